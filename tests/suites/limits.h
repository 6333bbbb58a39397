/* The limits of runtime/team.h as variables: a program that is built once runs with several. */
extern double team_loss, team_long;

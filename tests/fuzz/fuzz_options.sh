# Seeds of fuzz_options, into a folder.
sh tests/fuzz/readers.sh options "$1" || exit

# Lines that the model of the target (tests/runtime/fake_model.c) takes: others have other names.
n=0
for line in "fit --steps 5 --seed 7 --log json --log-every 2 --threads 3" \
    "fit --epochs=2 --eval-every=4 --set lr=0.5 --save a.st --save-every 2" \
    "feed --in x=x.npy --in y=y.npy --steps 3 --load a.st" \
    "predict --in x=x.npy --in k=k.npy --in gain=g.npy --out y=y.npy" \
    "weights --out w=w.npy --out c=c.npy --load a.st" "eval fit --load=a.st" "info" "--help"; do
    n=$((n + 1))
    printf %s "$line" | tr ' ' '\n' >"$1/taken-$n"
done

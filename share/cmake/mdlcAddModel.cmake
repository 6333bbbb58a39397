# mdlcAddModel: a model file becomes a target.
#
#   mdlc_add_model(NAME SOURCE FILE.mdl
#       [BUDGET SIZE]         the most bytes for all regions; the build fails where that is not enough
#       [PREFIX NAME]         of the emitted names and of the header (the stem of FILE)
#       [THREADS N]           the most threads that the bound provides for; 1 needs no OpenMP
#       [MAIN]                an executable that trains, evaluates and predicts, in place of a library
#       [SHARED | STATIC]     the library's kind (STATIC)
#       [REPORT]              writes PREFIX.report.json beside; its path is in the property MDLC_REPORT
#       [BLAS]                products by OpenBLAS
#       [DEFINES NAME=VALUE...]   values of dims and constants
#       [OPTIONS OPTION...]       further options of mdlc
#       [FLAGS FLAG...])          further flags of the C compiler, behind the recommended ones
#
# The library NAME has PREFIX.h on its include path, for those that link with it. The model is
# compiled again when it, a module that it uses or the compiler has changed.
include_guard(GLOBAL)
cmake_policy(PUSH)
cmake_policy(VERSION 3.20)

# Flags for the emitted C, for its target alone.
function(_mdlc_flags name threads)
    if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang|IntelLLVM")
        target_compile_options(${name} PRIVATE ${MDLC_C_FLAGS})
        if(MDLC_C_FLAGS_NATIVE)
            include(CheckCCompilerFlag)
            check_c_compiler_flag("${MDLC_C_FLAGS_NATIVE}" MDLC_HAS_NATIVE)
            if(MDLC_HAS_NATIVE)
                target_compile_options(${name} PRIVATE ${MDLC_C_FLAGS_NATIVE})
            endif()
        endif()
    endif()
    target_compile_options(${name} PRIVATE ${MODEL_FLAGS})
    target_compile_features(${name} PRIVATE c_std_11)
    if(NOT threads STREQUAL "1")
        find_package(OpenMP QUIET COMPONENTS C)
        if(OpenMP_C_FOUND)
            target_link_libraries(${name} PRIVATE OpenMP::OpenMP_C)
        endif()
    endif()
    if(UNIX)
        target_link_libraries(${name} PRIVATE m)
    endif()
endfunction()

function(_mdlc_check_arguments name)
    if(MODEL_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "mdlc_add_model(${name}): '${MODEL_UNPARSED_ARGUMENTS}' is no keyword of it, nor belongs to one")
    endif()
    if(MODEL_KEYWORDS_MISSING_VALUES)
        message(FATAL_ERROR "mdlc_add_model(${name}): a value is missing behind ${MODEL_KEYWORDS_MISSING_VALUES}")
    endif()
    if(NOT DEFINED MODEL_SOURCE)
        message(FATAL_ERROR "mdlc_add_model(${name}): SOURCE is missing, the model file")
    endif()
    if(MODEL_MAIN AND (MODEL_SHARED OR MODEL_STATIC))
        message(FATAL_ERROR "mdlc_add_model(${name}): MAIN makes an executable, SHARED and STATIC a library")
    endif()
    if(NOT MDLC_EXECUTABLE)
        message(FATAL_ERROR "mdlc_add_model(${name}): call find_package(mdlc) in this folder or one above it")
    endif()
    get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
    if(NOT "C" IN_LIST languages)
        message(FATAL_ERROR "mdlc_add_model(${name}): a model becomes a C file: write project(... LANGUAGES C ${languages})")
    endif()
endfunction()

function(mdlc_add_model name)
    cmake_parse_arguments(PARSE_ARGV 1 MODEL "MAIN;REPORT;BLAS;SHARED;STATIC"
        "SOURCE;BUDGET;PREFIX;THREADS" "DEFINES;OPTIONS;FLAGS")
    _mdlc_check_arguments(${name})
    get_filename_component(source "${MODEL_SOURCE}" ABSOLUTE)
    if(NOT EXISTS "${source}")
        message(FATAL_ERROR "mdlc_add_model(${name}): there is no '${source}'")
    endif()
    get_filename_component(prefix "${source}" NAME_WE)
    if(MODEL_PREFIX)
        set(prefix "${MODEL_PREFIX}")
    endif()

    set(folder "${CMAKE_CURRENT_BINARY_DIR}/mdlc/${name}")
    file(MAKE_DIRECTORY "${folder}")
    set(outputs "${folder}/${prefix}.c")
    set(options -o "${folder}/${prefix}.c" -MF "${folder}/${prefix}.c.d")
    if(MODEL_PREFIX)
        list(APPEND options "--prefix=${prefix}")
    endif()
    if(MODEL_BUDGET)
        list(APPEND options "--budget=${MODEL_BUDGET}")
    endif()
    if(MODEL_THREADS)
        list(APPEND options "--threads=${MODEL_THREADS}")
    endif()
    if(MODEL_BLAS)
        list(APPEND options --blas=openblas)
    endif()
    foreach(define IN LISTS MODEL_DEFINES)
        list(APPEND options -D "${define}")
    endforeach()
    if(NOT MODEL_MAIN)
        list(APPEND options --no-main -H "${folder}/${prefix}.h")
        list(APPEND outputs "${folder}/${prefix}.h")
    endif()
    list(APPEND options ${MODEL_OPTIONS})
    if(MODEL_REPORT)
        set(report "${folder}/${prefix}.report.json")
        list(APPEND outputs "${report}")
        list(APPEND options --report=json > "${report}")
    endif()

    file(RELATIVE_PATH shown "${CMAKE_SOURCE_DIR}" "${source}")
    add_custom_command(OUTPUT ${outputs}
        COMMAND "${MDLC_EXECUTABLE}" "${source}" ${options}
        DEPENDS "${source}" "${MDLC_EXECUTABLE}"
        DEPFILE "${folder}/${prefix}.c.d"
        COMMENT "Compiling model ${shown}"
        VERBATIM)

    if(MODEL_MAIN)
        add_executable(${name})
    elseif(MODEL_SHARED)
        add_library(${name} SHARED)
        set_target_properties(${name} PROPERTIES C_VISIBILITY_PRESET default) # its functions are there to be called
    else()
        add_library(${name} STATIC)
    endif()
    target_sources(${name} PRIVATE ${outputs} "${source}")
    if(NOT MODEL_MAIN)
        target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${folder}>")
    endif()
    if(MODEL_REPORT)
        set_target_properties(${name} PROPERTIES MDLC_REPORT "${report}")
    endif()
    if(MODEL_BLAS)
        find_library(MDLC_OPENBLAS openblas)
        if(NOT MDLC_OPENBLAS)
            message(FATAL_ERROR "mdlc_add_model(${name}): BLAS needs OpenBLAS, which was not found: give -DMDLC_OPENBLAS=PATH, or leave BLAS out")
        endif()
        target_link_libraries(${name} PRIVATE "${MDLC_OPENBLAS}")
    endif()
    _mdlc_flags(${name} "${MODEL_THREADS}")
endfunction()
cmake_policy(POP)

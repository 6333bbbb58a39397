# Seeds of fuzz_safetensors, into a folder.
sh tests/fuzz/readers.sh safetensors "$1" || exit

# The weights of tests/small_weights.h: those of the programs have other names.
weights() { # NAME HEADER DATA_BYTES
    {
        printf "\\$(printf %03o $((${#2} % 256)))\\$(printf %03o $((${#2} / 256)))\0\0\0\0\0\0%s" "$2"
        printf "%0$3d" 0
    } >"$folder/$1"
}
folder=$1
params='"fc.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"fc.bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]},"fc.mask":{"dtype":"U8","shape":[3],"data_offsets":[32,35]}'
weights small "{$params}" 35
weights small-states "{$params,\"bn.seen\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[35,38]},\"bn.running_mean\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[38,46]}}" 46
weights small-slots "{$params,\"mdlc.fit.step\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[35,43]},\"mdlc.fit.seed\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[43,51]}}" 51
wide='"fc.weight":{"dtype":"F64","shape":[2,3],"data_offsets":[0,48]},"fc.bias":{"dtype":"BF16","shape":[2],"data_offsets":[48,52]},"fc.mask":{"dtype":"U8","shape":[3],"data_offsets":[52,55]}'
weights small-wide "{$wide,\"bn.running_mean\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[55,59]}}" 59

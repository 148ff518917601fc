# What make calls before the compiler, by OBJCACHE: `keep_object.sh g++ OPTIONS -c -o OBJECT SOURCE`.
# Verilator's own library is the same in every model and takes longer than a small one: its objects
# are kept in $WAFERTLM_OBJECTS, by all that they are made of.
set -eu
for source; do :; done
case $source in
  */include/verilated*.cpp) ;;
  *) exec "$@" ;;
esac
include=${source%/*} options=
for word; do
  shift
  case $word in
    -DVL_* | -DVM_* | -DVERILATOR*) ;;
    -D*) continue ;; # of the driver alone
  esac
  options="$options ${word#*"$include"}" # that folder counts by what it holds, not by its name
  set -- "$@" "$word"
done
# Where nothing hashes, nothing is kept.
key=$({ "$1" --version; echo "$options"; cat "$include"/*.h "$source"; [ ! -f print.h ] || cat print.h; } \
  | sha256sum | cut -c 1-16)
[ -n "$key" ] || exec "$@"
object=$(basename "$source" .cpp).o
kept=$WAFERTLM_OBJECTS/$key-$object
if [ -f "$kept" ]; then
  cp "$kept" "$object"
else
  "$@"
  mkdir -p "$WAFERTLM_OBJECTS" && cp "$object" "$kept.$$" && mv "$kept.$$" "$kept" || rm -f "$kept.$$"
fi

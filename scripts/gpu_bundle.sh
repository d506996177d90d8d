#!/usr/bin/env bash
# Packs what a machine with a GPU needs to run scripts/gpu_check.sh, with nothing installed there
# but a driver, CUDA's runtime library and Python: no network, no MPI, no compiler.
#
# usage: gpu_bundle.sh [--arch N] [--nccl VERSION|none] [OUT]
#   --arch  compute capability of the GPU, for what is built and kept of NCCL [90: sm_90]
#   --nccl  a version of PyPI's nvidia-nccl-cu13 that lets two ranks share a GPU [2.30.7]
#   OUT     the archive [sluice-gpu.tar.xz]
# There: tar xJf sluice-gpu.tar.xz && sluice-gpu/scripts/gpu_check.sh
#
# Programs are built here (scripts/build.sh release). A build folder that is there already keeps the
# architectures that it has. The machine has to have a C library at least
# as new as this one's. NCCL is fetched with pip, and trimmed to one architecture: 250 MB otherwise.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
arch=90 nccl=2.30.7
while [ $# -gt 0 ]; do
  case $1 in
    --arch) arch=$2; shift 2 ;;
    --nccl) nccl=$2; shift 2 ;;
    -*) sed -n '2,/^# Programs/p' "$0" | sed '$d; s/^# \{0,1\}//'; exit 2 ;;
    *) break ;;
  esac
done
out=${1:-sluice-gpu.tar.xz}
mapfile -t programs < <(scripts/gpu_check.sh --programs)
CUDAARCHS=${CUDAARCHS:-$arch} scripts/build.sh release "${programs[@]}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/sluice-gpu
mkdir -p "$bundle"/{bin,lib,cxx,scripts/gpu,openmpi/{plugins,share,etc},pmix,nccl}
for program in "${programs[@]}"; do cp "build/bin/$program" "$bundle/bin/"; done
cp scripts/gpu_check.sh "$bundle/scripts/"
cp scripts/gpu/gpu_table.py "$bundle/scripts/gpu/"
cp scripts/gpu/gpu_bundle_run.sh "$bundle/run"

# Open MPI with its plugins for one machine. Its launcher goes by the name of the real program.
ompi() { ompi_info --path "$1" --parsable | sed 's/.*://'; }
launcher=$(readlink -f "$(command -v mpirun)")
cp "$launcher" "$bundle/bin/$(basename "$launcher")"
[ -e "$bundle/bin/mpirun" ] || ln -s "$(basename "$launcher")" "$bundle/bin/mpirun"
cp "$(readlink -f "$(command -v orted)")" "$bundle/bin/orted"
cp "$(ompi pkglibdir)"/mca_*.so "$bundle/openmpi/plugins/"
for other in psm usnic ofi ucx openib portals hcoll slurm sge fs_ fbtl fcoll io_ sharedfp; do
  rm -f "$bundle"/openmpi/plugins/mca_*"$other"*.so
done
cp -r "$(ompi pkgdatadir)/." "$bundle/openmpi/share/"
for folder in /usr/lib/*/pmix2/lib/pmix; do
  [ ! -d "$folder" ] || cp "$folder"/*.so "$bundle/pmix/"
done

# Libraries: not the C library, and not what belongs to the driver or to CUDA.
theirs='/(ld-linux.*|lib(c|m|dl|pthread|rt|resolv|cuda|cudart|nccl|nvidia[^/]*))\.so'
find "$bundle/bin" "$bundle/openmpi/plugins" "$bundle/pmix" -type f -exec ldd {} + 2>/dev/null |
  awk '/=> \//{print $3}' | sort -u | grep -vE "$theirs" |
  while read -r library; do cp -nL "$library" "$bundle/lib/"; done
mv "$bundle"/lib/lib{stdc++,gcc_s}.so* "$bundle/cxx/"  # CUDA's may need the machine's own
strip --strip-unneeded "$bundle"/bin/* 2>/dev/null || true

if [ "$nccl" != none ]; then
  python3 -m pip download -q --no-deps -d "$work/wheel" "nvidia-nccl-cu13==$nccl"
  python3 -m zipfile -e "$work"/wheel/*.whl "$work/wheel"
  python3 scripts/gpu/trim_fatbin.py "$(find "$work/wheel" -name 'libnccl.so.2')" \
    "$bundle/nccl/libnccl.so.2" "$arch"
fi

tar -C "$work" -cf - sluice-gpu | xz -6 -T0 >"$out"
bytes=$(stat -c %s "$out")
echo "$out: $((bytes / 1048576)) MiB"
if [ "$bytes" -gt $((60 << 20)) ]; then
  echo "more than 60 MiB" >&2
  exit 1
fi

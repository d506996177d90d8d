#!/usr/bin/env bash
# usage: run PROGRAM [ARGUMENT]...
# Runs a program with the libraries and the MPI of the bundle that this lies in (gpu_bundle.sh).
# CUDA's libraries are those of this machine: from the toolkit, or from Python packages.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cuda=
for folder in /usr/local/cuda*/lib64 /usr/local/cuda*/targets/x86_64-linux/lib; do
  [ ! -d "$folder" ] || cuda=$cuda:$folder
done
for package in nccl cuda_runtime cu13; do
  folder=$(python3 - "nvidia.$package" 2>/dev/null <<'PY'
import importlib.util, pathlib, sys
spec = importlib.util.find_spec(sys.argv[1])
print(pathlib.Path(list(spec.submodule_search_locations)[0], "lib") if spec else "")
PY
)
  if [ -n "$folder" ] && [ -d "$folder" ]; then cuda=$cuda:$folder; fi
done
# The newer C++ library of the two: CUDA's may need this machine's.
libraries=$here/lib
newest() { ls "$@" 2>/dev/null | while read -r each; do readlink -f "$each"; done |
             awk -F'so.6.0.' '{print $2, $0}' | sort -n | tail -1 | cut -d' ' -f2-; }
theirs=$(ldconfig -p 2>/dev/null | awk '/libstdc\+\+\.so\.6 .*x86-64/{print $NF; exit}')
if [ -n "$theirs" ] && [ "$(newest "$theirs" "$here"/cxx/libstdc++.so.6*)" != \
    "$(readlink -f "$theirs")" ]; then
  libraries=$here/cxx:$libraries
fi
export LD_LIBRARY_PATH=$libraries$cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} PATH=$here/bin:$PATH
export OPAL_PREFIX=$here/openmpi OPAL_BINDIR=$here/bin OPAL_LIBDIR=$here/lib \
  OPAL_PKGLIBDIR=$here/openmpi/plugins OPAL_PKGDATADIR=$here/openmpi/share \
  OPAL_DATADIR=$here/openmpi/share OPAL_SYSCONFDIR=$here/openmpi/etc
export OMPI_MCA_mca_base_component_path=$here/openmpi/plugins OMPI_MCA_plm_rsh_agent=false \
  OMPI_MCA_btl=self,vader,tcp OMPI_MCA_pml=ob1
# PMIx need not say that it compresses nothing.
export PMIX_MCA_pcompress_base_silence_warning=1 PMIX_MCA_mca_base_component_show_load_errors=0
export PMIX_MCA_mca_base_component_path=$here/pmix PMIX_INSTALL_PREFIX=$here
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
exec "$@"

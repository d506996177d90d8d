# The oldest CUDA and NCCL that Sluice is built with.
#
# sluice_nccl_version(HEADER VARIABLE) reads the version in nccl.h: "2.28.3"; empty if it has none.

# cudaStreamGetDevice is of 12.8.
set(SLUICE_CUDA_MINIMUM 12.8)
# ncclConfig_t::nChannelsPerNetPeer is of 2.28.3.
set(SLUICE_NCCL_MINIMUM 2.28.3)

function(sluice_nccl_version header variable)
  set(version "")
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${header} line REGEX "^#define NCCL_${part} +[0-9]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+$" number "${line}")
    list(APPEND version ${number})
  endforeach()
  list(JOIN version "." version)
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()

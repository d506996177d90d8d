# CUDA and NCCL: whether they are there, and the libraries that take them or their fakes.
#
# SLUICE_CUDA and SLUICE_NCCL say AUTO, ON or OFF; SLUICE_HAVE_CUDA and SLUICE_HAVE_NCCL, what came
# of it. The target sluice_nccl_library has NCCL's header and library.
#
# sluice_vendor_module(NAME CUDA|NCCL SOURCES file... [DEPS target...] [PRIVATE_DEPS target...]
#                      VENDOR_SOURCES file... VENDOR_DEPS target...
#                      FAKE_SOURCES file... FAKE_DEPS target...)
#   sluice_NAME, as sluice_module makes it, where there is what it takes; and for tests, everywhere,
#   sluice_NAME_fake: the same sources with the fakes' headers instead of the vendors'.
set(SLUICE_CUDA AUTO CACHE STRING "The CUDA device: AUTO (where there is a toolkit), ON or OFF")
set(SLUICE_NCCL AUTO CACHE STRING "The NCCL transport: AUTO (with CUDA, where found), ON or OFF")
set_property(CACHE SLUICE_CUDA SLUICE_NCCL PROPERTY STRINGS AUTO ON OFF)
set(SLUICE_HAVE_CUDA OFF)
set(SLUICE_HAVE_NCCL OFF)
set(SLUICE_FAKES_DIR ${PROJECT_SOURCE_DIR}/tests/fakes/include)

# Sanitizers look at the fakes: the vendor's runtime does things that they complain of.
if(SLUICE_CUDA STREQUAL AUTO AND SLUICE_SANITIZE)
  set(_look_for_cuda OFF)
else()
  set(_look_for_cuda ${SLUICE_CUDA})
endif()

include(${CMAKE_CURRENT_LIST_DIR}/SluiceVersions.cmake)
if(_look_for_cuda)
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_HOST_COMPILER AND NOT DEFINED ENV{CUDAHOSTCXX})
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  endif()
  # Machine code for A100, H100, B200 and RTX PRO, and for their relatives; PTX for what comes after
  # them. The environment variable CUDAARCHS (CMake's own) says otherwise, "90" for quick builds. A
  # build folder keeps its first: CMake itself reads the variable only once, and then has none.
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(_architectures 80-real 90-real 100-real 120-real 90-virtual)
    if(NOT "$ENV{CUDAARCHS}" STREQUAL "")
      set(_architectures $ENV{CUDAARCHS})
    endif()
    set(CMAKE_CUDA_ARCHITECTURES "${_architectures}" CACHE STRING "GPUs to make code for")
  endif()
  check_language(CUDA)
  find_package(CUDAToolkit ${SLUICE_CUDA_MINIMUM} QUIET)
  if(CMAKE_CUDA_COMPILER AND CUDAToolkit_FOUND)
    set(SLUICE_HAVE_CUDA ON)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
    enable_language(CUDA)
    # CMake 3.25 does not know that nvcc has C++20.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
  elseif(SLUICE_CUDA STREQUAL ON)
    message(FATAL_ERROR "SLUICE_CUDA is ON, but there is no CUDA compiler that works, or no CUDA "
                        "toolkit of version ${SLUICE_CUDA_MINIMUM} at least (compiler: "
                        "${CMAKE_CUDA_COMPILER}; "
                        "toolkit: ${CUDAToolkit_VERSION}). Set CUDACXX to nvcc's path.")
  endif()
endif()

if(SLUICE_NCCL STREQUAL ON AND NOT SLUICE_HAVE_CUDA)
  message(FATAL_ERROR "SLUICE_NCCL is ON, but CUDA is not built: see SLUICE_CUDA")
endif()
if(SLUICE_NCCL AND SLUICE_HAVE_CUDA)
  find_path(SLUICE_NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  find_library(SLUICE_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
  mark_as_advanced(SLUICE_NCCL_INCLUDE_DIR SLUICE_NCCL_LIBRARY)
  if(SLUICE_NCCL_INCLUDE_DIR)
    sluice_nccl_version(${SLUICE_NCCL_INCLUDE_DIR}/nccl.h SLUICE_NCCL_VERSION)
  endif()
  if(SLUICE_NCCL_INCLUDE_DIR AND SLUICE_NCCL_LIBRARY AND
     NOT "${SLUICE_NCCL_VERSION}" VERSION_LESS SLUICE_NCCL_MINIMUM)
    set(SLUICE_HAVE_NCCL ON)
    add_library(sluice_nccl_library INTERFACE)
    set_target_properties(sluice_nccl_library PROPERTIES EXPORT_NAME nccl_library)
    target_include_directories(sluice_nccl_library SYSTEM INTERFACE ${SLUICE_NCCL_INCLUDE_DIR})
    target_link_libraries(sluice_nccl_library INTERFACE ${SLUICE_NCCL_LIBRARY})
    set_property(GLOBAL APPEND PROPERTY SLUICE_INSTALL_TARGETS sluice_nccl_library)
  elseif(SLUICE_NCCL STREQUAL ON)
    message(FATAL_ERROR "SLUICE_NCCL is ON, but no NCCL of version ${SLUICE_NCCL_MINIMUM} at least "
                        "was found (header: ${SLUICE_NCCL_INCLUDE_DIR}, version "
                        "\"${SLUICE_NCCL_VERSION}\"; library: ${SLUICE_NCCL_LIBRARY})")
  elseif(SLUICE_NCCL_INCLUDE_DIR AND SLUICE_NCCL_LIBRARY)
    message(STATUS "NCCL ${SLUICE_NCCL_VERSION} is too old: ${SLUICE_NCCL_MINIMUM} at least")
  endif()
endif()

# "CUDA 13.0 (sm_90, PTX), NCCL 2.28.9, CUDA IPC", or what is missing; also for programs to print.
# SLUICE_CUDA_CODE is "sm_90, PTX".
if(SLUICE_HAVE_CUDA)
  set(_code ${CMAKE_CUDA_ARCHITECTURES})
  list(TRANSFORM _code REPLACE "^([0-9]+[a-z]?)(-real)?$" "sm_\\1")
  list(TRANSFORM _code REPLACE "^[0-9]+[a-z]?-virtual$" "PTX")
  if(CMAKE_CUDA_ARCHITECTURES MATCHES "(^|;)[0-9]+[a-z]?(;|$)")
    list(APPEND _code PTX)
  endif()
  list(REMOVE_DUPLICATES _code)
  list(JOIN _code ", " SLUICE_CUDA_CODE)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" _version ${CMAKE_CUDA_COMPILER_VERSION})
  set(SLUICE_ACCELERATORS "CUDA ${_version} (${SLUICE_CUDA_CODE})")
  if(SLUICE_HAVE_NCCL)
    string(APPEND SLUICE_ACCELERATORS ", NCCL ${SLUICE_NCCL_VERSION}")
  else()
    string(APPEND SLUICE_ACCELERATORS ", no NCCL")
  endif()
  string(APPEND SLUICE_ACCELERATORS ", CUDA IPC")
else()
  set(SLUICE_ACCELERATORS "no CUDA")
  set(SLUICE_CUDA_CODE "sm_90")  # as the fake says
endif()
message(STATUS "Sluice: ${SLUICE_ACCELERATORS}")

# The same bits on every processor: no fused multiplication and addition.
function(sluice_kernel_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -fmad=false)
endfunction()

function(sluice_vendor_module name vendor)
  set(lists SOURCES DEPS PRIVATE_DEPS VENDOR_SOURCES VENDOR_DEPS FAKE_SOURCES FAKE_DEPS)
  cmake_parse_arguments(ARG "" "" "${lists}" ${ARGN})
  if(SLUICE_HAVE_${vendor})
    sluice_module(${name} SOURCES ${ARG_SOURCES} ${ARG_VENDOR_SOURCES}
                  DEPS ${ARG_DEPS} ${ARG_VENDOR_DEPS} PRIVATE_DEPS ${ARG_PRIVATE_DEPS})
  endif()
  if(NOT SLUICE_BUILD_TESTS)
    return()
  endif()
  list(TRANSFORM ARG_DEPS REPLACE "^(sluice_(device|transport)_(nccl|cuda|cuda_ipc))$" "\\1_fake")
  set(fake sluice_${name}_fake)
  add_library(${fake} STATIC EXCLUDE_FROM_ALL ${ARG_SOURCES} ${ARG_FAKE_SOURCES})
  target_include_directories(${fake} BEFORE PUBLIC ${SLUICE_FAKES_DIR})
  target_include_directories(${fake} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                     PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${fake} PUBLIC ${ARG_DEPS} ${ARG_FAKE_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  sluice_flags(${fake} library)
  sluice_unity(${fake})
endfunction()

# sluice_sanitizers(TARGET VARIABLE) gives the compiler's options for SLUICE_SANITIZE, which this
# compiler takes together with Abseil.
# sluice_plain_sources(FILE...) compiles files without sanitizers.

include(CheckCXXSourceCompiles)

# Null, the bounds of objects, and pointers beyond them are left to the address sanitizer, which
# stops at any such access. Their checks take a fifth of the time to compile. Those of alignment
# take another fifth, and are left to the code that moves elements (sluice_sanitizers).
set(SLUICE_SANITIZE_WITHOUT "")
if(SLUICE_SANITIZE MATCHES undefined)
  set(SLUICE_SANITIZE_WITHOUT -fno-sanitize=null,object-size,vptr,pointer-overflow)
  # With its checks for null, GCC does not take the address of a function for a constant. Hash
  # tables of Abseil of 2024 compare such addresses with null at compile time
  # (https://github.com/abseil/abseil-cpp/issues/1634).
  set(CMAKE_REQUIRED_FLAGS "-std=c++20 -fsanitize=${SLUICE_SANITIZE}")
  get_target_property(CMAKE_REQUIRED_INCLUDES absl::flat_hash_set INTERFACE_INCLUDE_DIRECTORIES)
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  check_cxx_source_compiles("
    #include \"absl/container/flat_hash_set.h\"
    int Size() { absl::flat_hash_set<int> set; set.insert(1); return static_cast<int>(set.size()); }
    " SLUICE_UBSAN_TAKES_ABSEIL)
  unset(CMAKE_REQUIRED_FLAGS)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
  if(NOT SLUICE_UBSAN_TAKES_ABSEIL)
    list(APPEND SLUICE_SANITIZE_WITHOUT
      -fno-sanitize=nonnull-attribute,returns-nonnull-attribute)
  endif()
endif()

# Hash tables of Abseil of 2024 count generations under the address sanitizer. Debian's library has
# been built without it, and would find other fields
# (https://github.com/abseil/abseil-cpp/issues/1708). With this macro they do not count. They poison
# free slots all the same, which the library does not undo: the presets for tests say
# allow_user_poisoning=0.
if(SLUICE_SANITIZE MATCHES address)
  list(APPEND SLUICE_SANITIZE_WITHOUT -DNDEBUG_SANITIZER)
endif()

# GCC follows values less well through code that checks itself, and warns of what cannot be. The
# release build has these warnings, as errors.
if(SLUICE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  list(APPEND SLUICE_SANITIZE_WITHOUT -Wno-array-bounds -Wno-stringop-overflow
    -Wno-stringop-overread -Wno-maybe-uninitialized)
endif()

# Highway compiles loops for each set of instructions, which takes minutes under sanitizers. On x86
# all are left out but AVX2 and the least: the sets between, and those of 512 bits.
if(SLUICE_SANITIZE AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND SLUICE_SANITIZE_WITHOUT -DHWY_DISABLED_TARGETS=0x19FF)
endif()

function(sluice_sanitizers target variable)
  set(without ${SLUICE_SANITIZE_WITHOUT})
  if(SLUICE_SANITIZE MATCHES undefined AND NOT target MATCHES "^sluice_(device|tensor)")
    list(APPEND without -fno-sanitize=alignment)
  endif()
  set(${variable} -fsanitize=${SLUICE_SANITIZE} ${without} -fno-omit-frame-pointer
    -fno-sanitize-recover=all PARENT_SCOPE)
endfunction()

# sluice_plain_sources(FILE...) compiles oracles of tests optimized, and without sanitizers: most of
# what tests do is to work out what they expect. Such a file touches memory that others touch
# through memcpy, memcmp and memset only. Sanitizers check these wherever they are called.
function(sluice_plain_sources)
  if(SLUICE_SANITIZE)
    sluice_source_options(OPTIONS -O2 -fno-sanitize=all SOURCES ${ARGN})
  else()
    sluice_source_options(OPTIONS -O2 SOURCES ${ARGN})
  endif()
endfunction()

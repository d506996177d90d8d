# Install rules: the libraries as a package of CMake, and what the programs need to be used.
#
# The package has one export set for each component: core (sluice::sluice), mpi, cuda and nccl. So
# that a machine without MPI or CUDA reads only what it can use.
include(CMakePackageConfigHelpers)
get_property(_targets GLOBAL PROPERTY SLUICE_INSTALL_TARGETS)
set(_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)

set(_core_targets ${_targets})
list(FILTER _core_targets EXCLUDE REGEX "mpi$|cuda|nccl")
set(_mpi_targets ${_targets})
list(FILTER _mpi_targets INCLUDE REGEX "mpi$")
set(_cuda_targets ${_targets})
list(FILTER _cuda_targets INCLUDE REGEX "cuda")
set(_nccl_targets ${_targets})
list(FILTER _nccl_targets INCLUDE REGEX "nccl")

set(SLUICE_INSTALLED_COMPONENTS)
foreach(_component core mpi cuda nccl)
  if(NOT _${_component}_targets)
    continue()
  endif()
  list(APPEND SLUICE_INSTALLED_COMPONENTS ${_component})
  install(TARGETS ${_${_component}_targets} EXPORT sluice-${_component}-targets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT sluice-${_component}-targets NAMESPACE sluice:: DESTINATION ${_config_dir})
endforeach()

list(JOIN SLUICE_INSTALLED_COMPONENTS ", " SLUICE_INSTALLED_TEXT)

install(DIRECTORY include/sluice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
configure_package_config_file(cmake/sluice-config.cmake.in ${CMAKE_BINARY_DIR}/sluice-config.cmake
                              INSTALL_DESTINATION ${_config_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sluice-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sluice-config.cmake
              ${CMAKE_BINARY_DIR}/sluice-config-version.cmake
        DESTINATION ${_config_dir})

# For C, and for what is built without CMake; wherever the tree is moved to.
file(RELATIVE_PATH SLUICE_PC_UP ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" SLUICE_PC_UP "${SLUICE_PC_UP}")
# The static libraries of sluice::sluice, and what they link.
set(SLUICE_PC_LIBS)
set(SLUICE_PC_REQUIRES)
set(SLUICE_PC_SYSTEM_LIBS -luring -pthread)
foreach(_lib IN LISTS CMAKE_DL_LIBS)
  list(APPEND SLUICE_PC_SYSTEM_LIBS -l${_lib})
endforeach()
foreach(_target IN LISTS _core_targets)
  get_target_property(_type ${_target} TYPE)
  if(_type STREQUAL STATIC_LIBRARY)
    list(APPEND SLUICE_PC_LIBS -l${_target})
    get_target_property(_links ${_target} LINK_LIBRARIES)
    list(FILTER _links INCLUDE REGEX "^absl::")
    list(TRANSFORM _links REPLACE "absl::" "absl_")
    list(APPEND SLUICE_PC_REQUIRES ${_links})
  endif()
endforeach()
list(APPEND SLUICE_PC_REQUIRES libhwy hwloc libcurl libcrypto)
list(REMOVE_DUPLICATES SLUICE_PC_REQUIRES)
set(_pcs sluice-cxx)
if(SLUICE_HAVE_MPI)
  list(APPEND _pcs sluice-mpi)
endif()
if(TARGET sluice_c)
  list(APPEND _pcs sluice)
endif()
foreach(_variable LIBS REQUIRES SYSTEM_LIBS)
  list(JOIN SLUICE_PC_${_variable} " " SLUICE_PC_${_variable})
endforeach()
foreach(_pc IN LISTS _pcs)
  configure_file(cmake/${_pc}.pc.in ${CMAKE_BINARY_DIR}/${_pc}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${_pc}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# The programs find models and systems in ../share/sluice, wherever the tree is moved to. They find
# libraries that are in no system folder, as CUDA's, where they were linked. The package for Python
# installs what is not of the component `programs`.
if(TARGET sluice-bench)
  set(_programs sluice-bench sluice-sim sluice-store)
  set_target_properties(${_programs} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${_programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/share/sluice/models bench/systems
          DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice COMPONENT programs
          FILES_MATCHING PATTERN "*.json")
  install(FILES ${SLUICE_REPORT_FILES}
          DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice/report COMPONENT programs)
  install(FILES docs/recipes.json DESTINATION ${CMAKE_INSTALL_DATADIR}/sluice/cases
          COMPONENT programs)
  if(SLUICE_MANUAL)
    install(DIRECTORY ${CMAKE_BINARY_DIR}/share/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}
            COMPONENT programs)
    install(DIRECTORY ${CMAKE_BINARY_DIR}/share/bash-completion
            DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT programs)
  endif()
endif()

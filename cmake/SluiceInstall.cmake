# Install rules: find_package(sluice) gives sluice::sluice, sluice::mpi and, if built, sluice::cuda.
include(CMakePackageConfigHelpers)
get_property(_targets GLOBAL PROPERTY SLUICE_INSTALL_TARGETS)
set(_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sluice)

install(TARGETS ${_targets} EXPORT sluice-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/sluice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT sluice-targets NAMESPACE sluice:: DESTINATION ${_config_dir})
configure_package_config_file(cmake/sluice-config.cmake.in ${CMAKE_BINARY_DIR}/sluice-config.cmake
                              INSTALL_DESTINATION ${_config_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sluice-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sluice-config.cmake
              ${CMAKE_BINARY_DIR}/sluice-config-version.cmake
        DESTINATION ${_config_dir})

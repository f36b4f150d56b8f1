# SPDX-License-Identifier: Apache-2.0
# cmake --install: headers, libraries, the tool, a CMake package, pkg-config files, documents.
#
# Everything in the tree links the static library `belay`. What is installed is that and, with
# BUILD_SHARED_LIBS, a shared one made of the same objects, which programs get unless they ask
# otherwise (docs/decisions/0008-both-libraries.md). Nothing that is installed names a directory of
# this machine: the prefix can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(belay_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Belay)

# belay_install(TARGET EXPORT_NAME SET): a library as Belay::EXPORT_NAME, in Belay<SET>Targets.cmake.
function(belay_install target name set)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS ${target} EXPORT Belay${set}Targets
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT Belay${set}Targets NAMESPACE Belay:: DESTINATION ${belay_package_dir})
endfunction()

# belay_shared(NAME OBJECTS ... LINKED ...): the objects of the static library NAME as a shared one,
# NAME_shared.
function(belay_shared name)
  cmake_parse_arguments(arg "" "" "OBJECTS;LINKED" ${ARGN})
  add_library(${name}_shared SHARED ${arg_OBJECTS})
  set_target_properties(
    ${name}_shared
    PROPERTIES OUTPUT_NAME ${name}
               LINKER_LANGUAGE CXX
               VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
               INSTALL_RPATH $ORIGIN
               LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  target_include_directories(${name}_shared
                             INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_link_libraries(${name}_shared PRIVATE ${arg_LINKED})
  target_link_options(
    ${name}_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map
    -Wl,--no-undefined -Wl,--as-needed)
endfunction()

belay_install(belay belay Static)
if(MPI_CXX_FOUND)
  belay_install(belay_mpi mpi MpiStatic)
endif()
if(BUILD_SHARED_LIBS)
  belay_shared(belay OBJECTS $<TARGET_OBJECTS:belay_core> $<TARGET_OBJECTS:belay>
               LINKED ${belay_needs})
  belay_install(belay_shared belay Shared)
  if(MPI_CXX_FOUND)
    # Of the core's inside it has a few objects of its own, since the shared core shows only the API.
    set(belay_mpi_inside "src/(os/(errno|memory|posix_files?)|comm/exchange_check)\\.cpp\\.o$")
    belay_shared(
      belay_mpi
      OBJECTS $<TARGET_OBJECTS:belay_mpi>
              "$<FILTER:$<TARGET_OBJECTS:belay_core>,INCLUDE,${belay_mpi_inside}>"
              "$<FILTER:$<TARGET_OBJECTS:belay>,INCLUDE,${belay_mpi_inside}>"
      LINKED fmt::fmt $<BUILD_INTERFACE:MPI::MPI_CXX>)
    target_link_libraries(belay_mpi_shared PUBLIC belay_shared)
    belay_install(belay_mpi_shared mpi MpiShared)
  endif()
endif()

if(BELAY_TOOL)
  install(TARGETS belay_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(NOT MPI_CXX_FOUND)
  set(belay_no_mpi_headers PATTERN mpi.* EXCLUDE)
endif()
install(DIRECTORY include/belay DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${belay_no_mpi_headers}
        PATTERN *.h PATTERN *.hpp)
install(FILES README.md LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES docs/format.md docs/protocol.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/guide DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES examples/quickstart.c examples/quickstart.cpp
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)

configure_package_config_file(cmake/BelayConfig.cmake.in cmake/BelayConfig.cmake
                              INSTALL_DESTINATION ${belay_package_dir}
                              NO_SET_AND_CHECK_MACRO)
# Until 1.0 a new minor version may change the API.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/cmake/BelayConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/cmake/BelayConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/cmake/BelayConfigVersion.cmake
        DESTINATION ${belay_package_dir})

# belay_pkgconfig(NAME DESCRIPTION REQUIRES LIBS PRIVATE): from the template, with paths relative to
# where the file will lie.
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} NORMALIZE
           OUTPUT_VARIABLE belay_libdir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${belay_libdir}/pkgconfig
           OUTPUT_VARIABLE belay_prefix_from_pc)
function(belay_pkgconfig name description requires libs private)
  if(NOT BUILD_SHARED_LIBS)
    # Without a shared library every link is a static one.
    string(APPEND libs " ${private}")
    set(private "")
  endif()
  configure_file(cmake/belay.pc.in cmake/${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/cmake/${name}.pc
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
belay_pkgconfig(belay "Checkpoints that write little and survive a kill at any instant" ""
                "-lbelay" "-lfmt -ltomlplusplus -lcrypto -lxxhash -lisal -llz4 -lzstd -lstdc++ -lm -pthread")
if(MPI_CXX_FOUND)
  belay_pkgconfig(belay-mpi "Belay for MPI programs; compile and link with mpicc or mpicxx"
                  "belay = ${PROJECT_VERSION}" "-lbelay_mpi" "")
endif()

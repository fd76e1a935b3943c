# What `make install` lays down.
#
#   bin/attune, bin/attuned
#   lib/libattune-nccl.so           hook; libnccl-tuner-attune.so and its like are the names that
#                                   NCCL makes of NCCL_TUNER_PLUGIN=attune
#   lib/attune/                     strategies (plugins/CMakeLists.txt installs them)
#   lib/attune/fabric/libnccl.so.2  host fabric: never on the loader's own path
#   include/attune/, lib/pkgconfig/attune.pc
#   share/attune/surfaces/, share/man/, share/doc/attune/
foreach(program attune attuned)
    if(TARGET ${program})
        install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
endforeach()

if(TARGET attune_nccl)
    install(TARGETS attune_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    foreach(kind tuner profiler env)
        install(CODE "
            set(folder \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\")
            message(STATUS \"Installing: \${folder}/libnccl-${kind}-attune.so\")
            file(CREATE_LINK libattune-nccl.so \"\${folder}/libnccl-${kind}-attune.so\" SYMBOLIC)")
    endforeach()
endif()

if(TARGET attune_fabric)
    install(TARGETS attune_fabric LIBRARY DESTINATION
        ${CMAKE_INSTALL_LIBDIR}/attune/fabric NAMELINK_SKIP)
endif()

install(DIRECTORY include/attune DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY data/surfaces DESTINATION ${CMAKE_INSTALL_DATADIR}/attune
    FILES_MATCHING PATTERN "*.json" PATTERN "*.json.gz" PATTERN "*.csv")
if(EXISTS ${CMAKE_SOURCE_DIR}/data/suite.json)
    install(FILES data/suite.json DESTINATION ${CMAKE_INSTALL_DATADIR}/attune)
endif()
install(FILES data/knobs.json data/paper.json DESTINATION ${CMAKE_INSTALL_DATADIR}/attune)
# Job scripts: companion.sh is sourced, the rest is run or submitted.
file(GLOB JOBS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/jobs/*.sbatch ${CMAKE_SOURCE_DIR}/jobs/*.salloc
    ${CMAKE_SOURCE_DIR}/jobs/*.sh)
install(PROGRAMS ${JOBS} DESTINATION ${CMAKE_INSTALL_DATADIR}/attune/jobs)
install(FILES LICENSE README.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_file(attune.pc.in ${CMAKE_BINARY_DIR}/attune.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/attune.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

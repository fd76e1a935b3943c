/* Stands for glibc's libdl.so.2 at link time (src/hook/CMakeLists.txt); never loaded. */
#define NAME(name)                                                                                 \
    void name(void);                                                                               \
    void name(void)                                                                                \
    {                                                                                              \
    }

NAME(dladdr)
NAME(dladdr1)
NAME(dlclose)
NAME(dlopen)
NAME(dlsym)

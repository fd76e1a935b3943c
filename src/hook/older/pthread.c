/* Stands for glibc's libpthread.so.0 at link time (src/hook/CMakeLists.txt); never loaded. */
#define NAME(name)                                                                                 \
    void name(void);                                                                               \
    void name(void)                                                                                \
    {                                                                                              \
    }

NAME(pthread_attr_setstacksize)
NAME(pthread_create)
NAME(pthread_once)
NAME(pthread_setname_np)
NAME(pthread_sigmask)

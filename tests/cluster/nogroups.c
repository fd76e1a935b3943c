/*
 * nogroups: preloaded into Slurm's daemons where a user namespace has one user and one group: the
 * kernel refuses to change groups and ids there, and Slurm takes that for fatal.
 */
#include <grp.h>
#include <unistd.h>

int setgroups(size_t count, const gid_t *groups)
{
    (void)count;
    (void)groups;
    return 0;
}

int initgroups(const char *user, gid_t group)
{
    (void)user;
    (void)group;
    return 0;
}

int setresgid(gid_t real, gid_t effective, gid_t saved)
{
    (void)real;
    (void)effective;
    (void)saved;
    return 0;
}

int setresuid(uid_t real, uid_t effective, uid_t saved)
{
    (void)real;
    (void)effective;
    (void)saved;
    return 0;
}

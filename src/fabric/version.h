/*
 * version: the NCCL that the fabric poses as, ATTUNE_FABRIC_VERSION ("2.27.3"); 2.30.7 when unset.
 * It decides what ncclGetVersion answers, which plugin symbols are looked for and in which shape
 * they are called, and which features are missing.
 */
#ifndef ATT_FABRIC_VERSION_H
#define ATT_FABRIC_VERSION_H

/* NCCL_VERSION_CODE. A value that is no version from 2.21 on ends the process with one line: the
 * first question comes from NCCL's first function, which cannot fail. */
int att_fabric_version(void);

#endif

/** @file tools/train/check/check_facts.h
 * What --check knows of a rank: plain bytes, as they are sent to rank 0.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_CHECK_FACTS_H
#define BPT_TOOLS_CHECK_FACTS_H

#include "base/file_system.h"
#include "base/status.h"
#include "outer/comm/comm.h"
#include "tools/train/job/run_need.h"
#include "tools/train/options/train_options.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/** Why a file that an option names can't be used; empty where it can, or where none is named. */
typedef struct bpt_check_refusal {
    char what[256], hint[BPT_ERROR_HINT_SIZE];
} bpt_check_refusal;

typedef struct bpt_check_facts {
    char host[64], library[64], thread_level[16];
    uint32_t machine;    /* the lowest rank on it: hosts may share a name */
    uint32_t processors; /* of the host, online: logical ones */
    uint32_t cores;      /* that this rank may use, at least 1 */
    uint32_t quota;      /* cores whose time control groups leave the ranks of its host */
    uint32_t threads;    /* that --threads wants; 0: as many as there are cores */
    bool launched;       /* by mpirun, which may have bound it */
    bool serves;         /* a server, which computes next to nothing */
    bool on_device;      /* a device computes for it, without the cores */
    cpu_set_t allowed;   /* processors that it may use; none: not known */
    char network[64];    /* interfaces of its connections, with commas; "": none by TCP */
    double clock_ahead_s, clock_error_s; /* against rank 0 */

    bool has_data; /* --data is given */
    uint64_t data; /* what is to be the same on all ranks; 0 where it cannot be opened */
    bpt_check_refusal data_refusal;
    bpt_file_system data_place;

    uint64_t model; /* bpt_model_identify() of it in its own shape; 0: none is named, or refused */
    bpt_check_refusal model_refusal, device_refusal, tuned_refusal, resume_refusal;
    /* Rank 0's: what it says holds for all. */
    bpt_check_refusal job_refusal, trace_refusal, weights_refusal;

    bool has_scratch;       /* it is given samples, which it keeps there */
    uint64_t scratch_even;  /* bytes that an even share takes there; 0: not known */
    uint64_t scratch_most;  /* that all it may be given takes */
    uint64_t scratch_there; /* that are there already */
    char scratch_error[256];
    bpt_file_system scratch_place;

    bool has_stage;      /* it opens a copy of the dataset that is in --stage */
    uint64_t stage_need; /* bytes that have to be copied there yet; 0: none, or not known */
    char stage_error[256];
    bpt_file_system stage_place;

    bool has_run;       /* --output is given */
    bool run_finished;  /* rank 0's: the job ends at once, and writes nothing */
    bool run_seen;      /* what rank 0 has put beside the run's folder is seen here */
    uint64_t run_frees; /* rank 0's: bytes of what --force removes there */
    /* Rank 0's: of a run that begins anew; of one that goes on, or where the job is refused, that
     * of its weights alone. most 0: not known. */
    bpt_run_need run_need;
    bpt_check_refusal run_refusal;
    bpt_file_system run_place;
} bpt_check_facts;

/** Keeps what this thread's last error says.
 * @param hint where that has none */
void bpt_check_refuse(bpt_check_refusal *refusal, const char *hint);

/** Lists the interfaces of this process's TCP connections, loopback left out.
 * @param[out] list shape [size]; "" if there are none, or it cannot be known */
void bpt_check_interfaces(char *list, size_t size);

/** Loads --model, in its own shape and in that of the dataset.
 * @param sees_data whether this rank has opened --data
 * @param f         its model or model_refusal is set */
void bpt_check_model(const bpt_train_options *o, bool sees_data, bpt_check_facts *f);

/** Opens what --device names for this rank, reads what a run that is gone on from has kept of it,
 * and closes it. Does nothing where --servers leaves no rank to train, which is refused for itself.
 * @param f its device_refusal is set, or its threads where a device computes and none are wanted;
 *          and whether it computes alone */
void bpt_check_device(const bpt_train_options *o, const bpt_comm *comm, bpt_check_facts *f);

/** Reads --tuned, and asks whether it is for this machine and the rank's step, where the dataset
 * and the model are known.
 * @param cores that the rank has for itself
 * @param f     its data and model are set; its tuned_refusal is */
void bpt_check_tuned(const bpt_train_options *o, bpt_comm *comm, unsigned cores,
                     bpt_check_facts *f);

/** @return whether weights come from a checkpoint, or would if what --resume names were one */
bool bpt_check_goes_on(const bpt_train_options *o);

/** Looks for what --resume goes on from: whether it is sound, and of the model in the shape of the
 * dataset, where both are known.
 * @param f its data and model are set; its resume_refusal is */
void bpt_check_resume(const bpt_train_options *o, const bpt_comm *comm, bpt_check_facts *f);

/** Reads --init-weights for the model in the shape of the dataset, unless there is a checkpoint to
 * go on from. Without a dataset only whether the file is there can be known.
 * @param f its data and model are set; its weights_refusal is */
void bpt_check_weights(const bpt_train_options *o, bpt_check_facts *f);

/** Chooses and checks what a job would by the options, the number of ranks, the dataset and the
 * model, as far as it does so by itself.
 * @param f its data and model are set; its job_refusal is, or what its run_need is known by */
void bpt_check_job(const bpt_train_options *o, bpt_comm *comm, bpt_check_facts *f);

/** Whether --trace can be written, where its folder is there or is not the run's to make.
 * @param f its trace_refusal is set */
void bpt_check_trace(const bpt_train_options *o, bpt_check_facts *f);

/** Opens the dataset, looks for both splits, and closes it.
 * @param scattered whether rank 0 is to give out its samples
 * @param[out] identity of what it holds: bpt_dataset_identify()
 * @return BPT_OK, as bpt_dataset_open() (without a hint where there is none),
 *         bpt_split_option_find() or bpt_delivery_check() */
bpt_status bpt_check_data(const bpt_train_options *o, bool scattered, uint64_t *identity);

#endif

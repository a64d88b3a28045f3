/** @file tools/train/job/checkpoint.h
 * Checkpoints: folders RUN/checkpoints/step-NNNNNNNN, whole only with their file DONE, which holds
 * the checksums of all others.
 *
 *     model.safetensors      the weights, the same on all ranks
 *     server.momentum.safetensors   with --server-momentum: what the global weights keep of their
 *                            last change
 *     rank-N.*.safetensors   state of rank N's optimiser, a file a vector: momentum, or exp_avg
 *                            and exp_avg_sq
 *     rank-N.json            where rank N stands: counters, index stream, exchange
 *
 * Threads: the one that trains. A function that does not say that it is collective is this rank's
 * own: it sends nothing, and ranks that go on together agree on its status first. */
#ifndef BPT_TOOLS_CHECKPOINT_H
#define BPT_TOOLS_CHECKPOINT_H

#include "tools/train/job/job.h"

/** Saves the job; every rank's network holds the global weights. Older checkpoints beyond
 * --checkpoint-keep are removed once the new one is whole. Collective over the job.
 * @return BPT_OK, BPT_ENOSPC, BPT_EIO, BPT_ENOMEM, BPT_EPEER; on error older ones are untouched and
 *         the new one is removed */
bpt_status bpt_checkpoint_save(bpt_job *job);

/** Where that has failed for nothing but want of room, on whichever rank: warns, and the job goes
 * on without. Collective over the job, as every rank comes from there with an error.
 * @param failed what it returned; its text is this thread's last error
 * @return BPT_OK; @p failed with its text, for another reason; BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_checkpoint_forgo(const bpt_job *job, bpt_status failed);

/** Looks whether there is a checkpoint where --resume names a path, before anything is changed. It
 * needs no job.
 * @return BPT_OK, BPT_ENOENT (with hint), BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_expect(const char *resume);

/** Likewise, and looks whether what the ranks of a job read of it is as it was written.
 * @param[out] path of the checkpoint, caller owns; NULL on error, or where it has gone meanwhile
 * @return as above, or as bpt_checkpoint_verify() */
bpt_status bpt_checkpoint_try(const char *resume, uint32_t n_ranks, char **path);

/** Looks what batch the job had that --resume goes on from. It needs no job; what cannot be read is
 * left to whoever opens the checkpoint.
 * @param n_ranks of this job
 * @return its --batch-size; 0: there is none, or it had other ranks or merged no weights */
int64_t bpt_checkpoint_batch(const bpt_train_options *o, uint32_t n_ranks);

/** Tells the run that a path of --resume belongs to: of a checkpoint the folder two above it, by
 * its path if a run is there, else behind links; else the path itself.
 * @param resume not "auto"
 * @param[out] run caller owns, bpt_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_checkpoint_run(const char *resume, char **run);

/** What a checkpoint holds, verified. */
typedef struct bpt_checkpoint {
    char *path;          /* of its folder */
    const char *update;  /* the way of updating that it is of; in state */
    bpt_json_doc *state; /* of this rank, or of rank 0 where the job had fewer ranks */
    bpt_counters count;  /* of this rank; with another shape of job, progress and seconds alone */
    bool eval_due;       /* the weights were to be evaluated; what rank 0 knows counts */
    bpt_sampler_state sampler;
    bpt_quality_state quality;    /* zeros where nothing is held out */
    uint32_t rounds;              /* of the partition; 0: there was none */
    uint64_t first_sample, batch; /* of this rank in a step of all ranks, where exact */
    uint64_t updates;             /* that the optimiser has counted */
    const char *placement;      /* first layer that one rank computed for all, in state; "": none */
    uint64_t placement_host;    /* that rank */
    uint64_t placement_updates; /* of those layers, on that rank */
    const bpt_json *exchange;   /* inside state; NULL if nothing was exchanged */
    bool exact;                 /* of this very job: it goes on bit for bit */
    const char *differs;        /* else: in what it differs; static */
    bool same_order;            /* of samples: that of the checkpoint goes on */
    bool same_cuts;             /* of convolutions, by the same costs, on this rank */
    const char *device;         /* kind of what this rank computed on, in state: "cpu", "cuda" */
    bool same_device;           /* of that kind now */
    const char *precision;      /* likewise: "fp32", "bf16", "tf32"; NULL: it does not say */
    bool same_precision;        /* as now, as far as it says */
} bpt_checkpoint;

/** Finds the checkpoint that --resume names, and verifies this rank's part of it. Collective up to
 * the verification: agree on the status afterwards.
 * @param[out] found whether there is one (with "auto" there may be none)
 * @param[out] c     released by bpt_checkpoint_close()
 * @return BPT_OK, BPT_ENOENT (none where one was named), BPT_ECORRUPT (a file differs from its
 *         checksum; the hint names the checkpoint before), BPT_EDATA (also another format, with
 *         hint), BPT_EIO, BPT_ENOMEM */
bpt_status bpt_checkpoint_open(const bpt_job *job, bool *found, bpt_checkpoint *c);
/** Releases what it holds; also of one that was not found, or is closed. */
void bpt_checkpoint_close(bpt_checkpoint *c);

/** Warns where a job goes on otherwise than whoever gave --resume may expect: on rank 0 as another
 * job, or from the start although there are checkpoints, of which none is whole; on every rank
 * whose last bits may differ: with convolutions cut by other costs, on another kind of device, in
 * another precision, or with kernels of its GPU that the run has not kept. All networks are made.
 * @param c NULL: none was found */
void bpt_checkpoint_warn(const bpt_job *job, const bpt_checkpoint *c);

/** Reads the weights and, unless the job is another one, sets the optimiser's state in the job's
 * network, which is fresh.
 * @param[out] weights shape [n weights]; on rank 0 alone
 * @return BPT_OK, as bpt_safetensors_read(), BPT_EBACKEND */
bpt_status bpt_checkpoint_read(const bpt_checkpoint *c, bpt_job *job, float *weights);

/** Reads the velocity of the server's momentum, of an exact checkpoint of a job with one.
 * @param[out] velocity shape [n weights]; on rank 0 alone
 * @return as bpt_safetensors_read() */
bpt_status bpt_checkpoint_velocity(const bpt_checkpoint *c, const bpt_job *job, float *velocity);

#endif

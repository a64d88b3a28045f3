/** @file tools/train/job/job.h
 * A training job of one rank: everything that it is composed of, and what all ways of training do
 * alike: a step, a look at the clock, an evaluation, a checkpoint.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_JOB_H
#define BPT_TOOLS_JOB_H

#include "base/json.h"
#include "inner/device.h"
#include "inner/network/network.h"
#include "outer/comm/comm.h"
#include "outer/data/partition.h"
#include "outer/exchange/exchange.h"
#include "storage/dataset/dataset.h"
#include "storage/stage/stage.h"
#include "tools/train/chart/chart.h"
#include "tools/train/data/delivery.h"
#include "tools/train/data/feed.h"
#include "tools/train/exchange/gradient_sums.h"
#include "tools/train/exchange/pace.h"
#include "tools/train/exchange/quality.h"
#include "tools/train/job/checkpoint_clock.h"
#include "tools/train/job/counters.h"
#include "tools/train/job/placed.h"
#include "tools/train/options/learning_options.h"
#include "tools/train/options/train_options.h"
#include "tools/train/run/run_folder.h"
#include "tools/train/run/step_trace.h"

/** Since the last line of progress. */
typedef struct bpt_interval {
    uint64_t start_ns, progress, wait_ns, data_wait_ns;
    double loss_sum;
    uint64_t loss_samples;
    uint64_t stale_max, n_stale, spread_max;
    uint64_t stale[BPT_STALENESS_BUCKETS];
} bpt_interval;

/** What is there of a network that is in two parts (tools/train/job/placed.h), for its plan of
 * memory.
 */
typedef struct bpt_parting {
    enum {
        BPT_PARTING_NONE,   /* it is in one */
        BPT_PARTING_BEFORE, /* it still is, while speeds are measured, and nothing else is there */
        BPT_PARTING_DONE
    } stage;
    bool host;     /* this rank has the tail */
    size_t border; /* behind this layer */
} bpt_parting;

struct bpt_job {
    const bpt_train_options *options;
    bpt_comm *comm; /* borrowed */
    uint32_t rank, n_ranks;
    uint32_t n_workers;             /* ranks 0 to n_workers - 1 train */
    uint32_t n_servers;             /* the others, which hold the global weights and no more */
    bpt_update_choice update;       /* never AUTO */
    bpt_update_terms terms;         /* laid over its rule */
    bpt_partition_choice partition; /* never AUTO */
    unsigned n_threads;
    unsigned cores;             /* that this rank has for itself */
    unsigned ranks_on_host;     /* this one included */
    bpt_stage *stage;           /* copy that is opened in place of --data; NULL: none */
    bpt_dataset *opened;        /* at --data; NULL where only rank 0 has it, and on others */
    bpt_scratch *scratch;       /* what these have of it; else NULL */
    const bpt_dataset *dataset; /* of either; borrowed */
    uint64_t scratch_identity;  /* of what scratch is filled from, where it is in use */
    uint64_t dataset_identity;  /* bpt_dataset_identify(): 53 bits of it, as JSON holds them */
    uint64_t model_identity;    /* bpt_model_identify(), likewise */
    const bpt_split *train, *test;
    bpt_split told[2];        /* on a server these two, as far as it is told of them */
    bpt_model_override shape; /* of the dataset's images */
    bpt_model *model;
    bpt_device *device;   /* that the network is on; NULL: on the cores, or a server */
    bool any_device;      /* of any rank */
    bpt_pool *pool;       /* NULL on a server, and so are network, feed and shares */
    bpt_network *network; /* of the whole model; where it is placed, it evaluates and no more */
    bpt_parting parting;
    bpt_placed *placed;     /* the parts that are trained in its place; NULL: none */
    uint32_t batch;         /* samples of one step of this rank */
    uint64_t first_sample;  /* of that step, among those of all ranks */
    uint64_t batch_all;     /* samples that one step of each rank comes to */
    uint64_t total_samples; /* of the run, all ranks */
    uint64_t epoch_samples; /* of the training split, but for those that are held out */
    uint64_t held_out;      /* samples of it that no rank trains on; 0: none */
    uint32_t *records;      /* bpt_held_out_draw(); NULL where none are held out */
    bpt_quality *quality;   /* likewise */
    bpt_pace pace;          /* at the start */
    double lr_factor;       /* of --lr, for the number of workers: bpt_train_lr_factor() */
    bpt_schedule schedule;  /* scaled by it */
    bpt_partition *shares;  /* delta rules; else NULL */
    uint32_t noted_rounds;  /* of them, told to the user */
    uint32_t rounds;        /* of all, of a job that goes on; 0: what --idpa-rounds says */
    double *solo;           /* images a second of each rank by itself as measured before training,
                               0 where not; shape [n_ranks] */
    bpt_span *statistics;   /* of the model's vector: no terms are for them; [n_statistics] */
    size_t n_statistics;
    bpt_exchange *exchange;  /* NULL where nothing is exchanged; under allreduce of no values, which
                                travel as sums */
    bpt_gradient_sums *sums; /* allreduce; else NULL */
    bpt_feed *feed;
    bpt_delivery *delivery; /* NULL where every rank opens the dataset */
    bpt_run_folder *run;
    bpt_step_trace *trace; /* NULL without --trace */
    bpt_chart *chart;      /* of rank 0, else NULL */
    bool finished;         /* before it began: --resume auto on a run that came to its end */
    bool begun;            /* what is in the run's folder may have been changed */
    bpt_counters count;    /* what others keep for this process is added by bpt_job_count() */
    uint64_t start_ns;     /* of this process's training */
    double seconds_before; /* of count.seconds: by another job, whose weights this one took over */
    double comm_cpu_before_s; /* processor time of the MPI thread until then: starting MPI */
    bpt_interval interval;
    float *flat;                           /* scratch vector, shape [n weights] */
    bpt_pinned flat_pinned;                /* it is, if that helps copies */
    uint64_t eval_every, checkpoint_every; /* samples of progress between them; 0: never */
    uint64_t next_eval, next_checkpoint;   /* progress at which they are due; UINT64_MAX: never */
    bpt_checkpoint_clock checkpoint_clock; /* of rank 0; others ask for none by time */
    bool checkpoint_has_room;              /* one is due by it, and not yet asked for */
    bool eval_due;                         /* of the present weights: put off by a stop */
    bpt_json_writer json;                  /* for events */
    double last_loss, test_loss, test_accuracy;
    bool warned_of_chance; /* that the network does no better than guessing */
    double rates;          /* learning rates, added up since this was last set to 0 */
};

/** Makes everything of a job, at its start or, with --resume, where a checkpoint left it.
 * Collective.
 * @param options,comm borrowed while the job lives
 * @return BPT_OK or any error of the parts; on error @p job is released */
bpt_status bpt_job_open(bpt_job *job, const bpt_train_options *options, bpt_comm *comm);
/** Releases everything of a job. Collective where it has an exchange or a delivery. Leaves this
 * thread's last error as it is. */
void bpt_job_close(bpt_job *job);

/** @return whether this rank holds global weights and trains nothing */
bool bpt_job_is_server(const bpt_job *job);

/** @return epochs of progress: what the ranks have done, and this one on top since it last heard */
double bpt_job_epoch(const bpt_job *job);

/** @return what this rank has done in the whole run until now */
bpt_counters bpt_job_count(const bpt_job *job);

/** @return whether rank 0 alone opens the dataset, and the others are given their samples */
bool bpt_job_scatters(const bpt_job *job);

/** @return the records of the test split that this rank evaluates where all take part */
bpt_record_range bpt_job_test_part(const bpt_job *job);

/** @return rounds in which the data are given out to ranks; 0: they are not (local, allreduce) */
uint32_t bpt_job_rounds(const bpt_job *job);

/** @return whether there are rounds, and --idpa-rounds leaves open how many */
bool bpt_job_rounds_are_free(const bpt_job *job);

/** @return how this rank's optimiser learns; of a server, how the workers' do */
bpt_learning bpt_job_learning(const bpt_job *job);

/** @return how many vectors of state it has; 0 on a server */
size_t bpt_job_n_states(const bpt_job *job);

/** @return how ranks follow the momentum of all; layers are placed already */
bpt_shared_momentum bpt_job_shared_momentum(const bpt_job *job);

/** @return the network that this rank trains: the whole one, or its part */
bpt_network *bpt_job_trained(const bpt_job *job);

/** @return the model of that */
const bpt_model *bpt_job_trained_model(const bpt_job *job);

/** Sets all weights. @param weights shape [elements of the model]; those of the trained network are
 * the first @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_job_set_weights(bpt_job *job, const float *weights);

/** Reads the weights, or a state of the optimiser as this rank has it; sets such a state.
 * @param flat shape [elements of the model] @return BPT_OK, BPT_EBACKEND */
bpt_status bpt_job_get(bpt_job *job, bpt_vector which, float *flat);
bpt_status bpt_job_set_state(bpt_job *job, bpt_vector which, const float *flat);

/** @return how often the optimiser has updated. On a server there is none: 0 */
uint64_t bpt_job_updates(const bpt_job *job);
/** Sets how often the optimiser has updated. @param tail layers that this rank computes for all */
void bpt_job_set_updates(bpt_job *job, uint64_t n, uint64_t tail);

/** @return the learning rate of the next step */
float bpt_job_rate(const bpt_job *job);

/** Takes the next batch and trains on it.
 * @param gradient_only leaves the weights and computes gradients, divided by batch_all; the step
 *                      goes on until bpt_job_apply()
 * @return BPT_OK, BPT_ENUMERIC (names step, and input, layer or weights), BPT_ECORRUPT,
 *         BPT_EBACKEND, or any error of the delivery of samples */
bpt_status bpt_job_step(bpt_job *job, bool gradient_only);

/** Names the step in an error of what was computed in it, and hints at what helps. @return @p
 * status
 */
bpt_status bpt_job_name_step(const bpt_job *job, uint64_t step, bpt_status status);

/** Ends a step of gradients: changes the weights from what was summed over the ranks.
 * @param rate bpt_job_rate() before the step
 * @return BPT_OK, BPT_ENUMERIC (names step and weights) */
bpt_status bpt_job_apply(bpt_job *job, float rate);

/** Notes an answer of the exchange: progress, staleness, how far apart its shards are. */
void bpt_job_note_reply(bpt_job *job, const bpt_reply *reply);

/** Tells of rounds of the partition since the last call: a line, and a "shares" event. On rank 0;
 * in tools/train/job/job_shares.c.
 * @return BPT_OK or an error of the run's folder */
bpt_status bpt_job_note_shares(bpt_job *job);

/** Warns at the end of a job that was too short for all rounds of the partition: what the others
 * would have given out was never trained on; not of one that took over from another job, which
 * gave out what nobody knows. On rank 0; in tools/train/job/job_shares.c. */
void bpt_job_warn_of_unseen(const bpt_job *job);

/** Prints the line of progress and writes a step event, if it is time to.
 * @return BPT_OK or an error of the run's folder */
bpt_status bpt_job_report(bpt_job *job);

/** The same at the end, also where weights or losses are no numbers any more, of the steps that no
 * line has told of: a run of less than --log-interval would have none, and of any other the last
 * losses would be in no file.
 * @return BPT_OK or an error of the run's folder */
bpt_status bpt_job_report_rest(bpt_job *job);

/** @return whether this rank asks for a meeting: bpt_job_wants() would say something */
bool bpt_job_is_asked(bpt_job *job);

/** @return BPT_MEET_* bits that this rank asks for: what it was told by signal, a checkpoint once
 * per signal, and the end also where another rank was told; of rank 0 a checkpoint by time, too,
 * unless its disk has no room for one, of which it warns */
uint32_t bpt_job_wants(bpt_job *job);

/** Evaluates the network's present weights on the test split and writes an event. An evaluation
 * that is stopped stays due (eval_due).
 * @param together all workers take part, each with its part of the split; else this rank alone
 * @param[out] stopped whether a rank was told to stop meanwhile: then there is no event and no
 *                 result
 * @return BPT_OK or an error of the parts */
bpt_status bpt_job_evaluate(bpt_job *job, bool together, bool *stopped);

/** Rank 0: draws the run's chart anew from its metrics, unless that was done a moment ago and is
 * not the last time; in tools/train/job/job_chart.c. Where it cannot be drawn the run goes on.
 * Leaves this thread's last error as it is.
 * @param last nothing comes after it */
void bpt_job_draw(bpt_job *job, bool last);

#endif

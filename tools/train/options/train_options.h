/** @file tools/train/options/train_options.h
 * The options of bpt-train: one table, one struct. */
#ifndef BPT_TOOLS_TRAIN_OPTIONS_H
#define BPT_TOOLS_TRAIN_OPTIONS_H

#include "base/options.h"
#include "outer/data/order.h"
#include "storage/augmentations/augment.h"

typedef enum bpt_update_choice {
    BPT_UPDATE_DEFAULT, /* local on one rank, agwu on several */
    BPT_UPDATE_AUTO,    /* likewise, but allreduce where measurements say so */
    BPT_UPDATE_LOCAL,
    BPT_UPDATE_AGWU,
    BPT_UPDATE_SGWU,
    BPT_UPDATE_EASGD,
    BPT_UPDATE_ALLREDUCE,
} bpt_update_choice;

typedef enum bpt_partition_choice {
    BPT_PARTITION_AUTO, /* idpa under agwu, sgwu and easgd, else even */
    BPT_PARTITION_EVEN,
    BPT_PARTITION_IDPA,
} bpt_partition_choice;

typedef enum bpt_data_mode {
    BPT_DATA_SHARED, /* every rank opens the dataset */
    BPT_DATA_SCATTER /* rank 0 does, and gives out samples */
} bpt_data_mode;

typedef struct bpt_tuning bpt_tuning;

/** How a push under agwu is weighed by the age of the weights that it grew from. */
typedef enum bpt_gamma_choice {
    BPT_GAMMA_RECALLED,
    BPT_GAMMA_LAG,
    BPT_GAMMA_NONE
} bpt_gamma_choice;

/** What the pushes of a rank are weighed by beside their age. */
typedef enum bpt_quality_choice { BPT_QUALITY_OFF, BPT_QUALITY_HELD_OUT } bpt_quality_choice;

typedef enum bpt_lr_scale { BPT_LR_SCALE_LINEAR, BPT_LR_SCALE_NONE } bpt_lr_scale;

typedef enum bpt_nesterov { BPT_NESTEROV_AUTO, BPT_NESTEROV_TRUE, BPT_NESTEROV_FALSE } bpt_nesterov;

typedef struct bpt_train_options {
    /* what to train, on what, where to */
    const char *data, *train_split, *test_split, *model, *init_weights, *init_except, *output;
    const char *freeze_before; /* name of a layer; NULL: all learn */
    bool force;
    int64_t input_size[2];
    int64_t classes;
    /* how to learn */
    double epochs;
    int64_t batch_size;
    int optimizer; /* for bpt_optimizer_at() */
    double lr;
    int lr_scale; /* bpt_lr_scale */
    double momentum, weight_decay, beta1, beta2, adam_eps, lars_eta;
    int nesterov; /* bpt_nesterov */
    double clip_norm, label_smoothing;
    const char *step_limit; /* for bpt_step_limit() */
    const char *augment;    /* for bpt_augment_parse() */
    int schedule;           /* for bpt_schedule_kind_at() */
    double warmup_epochs, warmup_start, lr_step_size, lr_step_factor;
    int64_t milestones[BPT_OPTION_LIST_MAX];
    double pct_start, div_factor, final_div_factor, power;
    int64_t seed;
    int order;           /* bpt_order_kind */
    int64_t order_block; /* samples */
    /* ranks */
    int update;              /* bpt_update_choice */
    int partition;           /* bpt_partition_choice */
    int gamma;               /* bpt_gamma_choice */
    const char *sync_every;  /* for bpt_pace_begin() */
    const char *placement;   /* "auto", "off" or the name of a layer */
    const char *idpa_rounds; /* for bpt_idpa_rounds() */
    int64_t max_staleness, servers;
    const char *shared_momentum; /* for bpt_momentum_gain() */
    double server_momentum, delay_compensation, elasticity;
    int quality; /* bpt_quality_choice */
    double held_out;
    double rebalance, calibrate;
    int data_mode;       /* bpt_data_mode */
    const char *scratch; /* folder; each rank has one of its own in it */
    const char *stage;   /* folder for a copy of the dataset; NULL: none is made */
    /* this machine */
    const char *policy; /* for bpt_policy_find() */
    const char *device; /* for bpt_device_option_open() */
    int precision;      /* bpt_precision */
    int64_t threads, loader_threads, prefetch;
    const char *tuned;  /* file of bpt-tune; %h in it: the host's name */
    bpt_tuning *tuning; /* what is in it (tools/train/run/tuning.h); NULL before it is read */
    /* run */
    int64_t checkpoint_every, checkpoint_keep;
    double checkpoint_minutes;
    double eval_every;
    const char *resume;
    double log_interval;
    int log_level;
    int64_t bench;
    const char *trace, *trace_steps;
    const char *replay;
    bool dry_run, check;
    double stall_warning, stall_timeout; /* seconds; 0: never */
} bpt_train_options;

extern const bpt_command bpt_train_command;

/** @return "agwu" for BPT_UPDATE_AGWU, and so on */
const char *bpt_update_choice_name(bpt_update_choice update);

/** @return "idpa" for BPT_PARTITION_IDPA, and so on */
const char *bpt_partition_choice_name(bpt_partition_choice partition);

/** @return "blocks" for BPT_ORDER_BLOCKS, and so on */
const char *bpt_order_kind_name(bpt_order_kind order);

/** @return "scatter" for BPT_DATA_SCATTER, and so on */
const char *bpt_data_mode_name(bpt_data_mode mode);

/** @return what --augment says, which bpt_options_parse() has found right */
bpt_augment bpt_train_augment(const bpt_train_options *o);

/** Checks what no single row of the table can: what is missing, and what cannot go together.
 * @param set where the options come from
 * @return BPT_OK, BPT_EUSAGE (with hint) */
bpt_status bpt_train_options_check(const bpt_train_options *o, const bpt_option_set *set);

#endif

#include "tools/train/options/train_help.h"

const char bpt_train_epilogue[] =
    "exit status:\n"
    "  0  done\n"
    "  1  run-time failure\n"
    "  2  wrong usage or configuration\n"
    "  3  dataset, weights or checkpoint missing or damaged\n"
    "  4  the loss, a gradient or a weight is not a finite number\n"
    "  75 stopped early, checkpoint saved: go on with --resume auto; or stopped before\n"
    "     the first step, nothing changed: run the same again\n"
    "  130 a second SIGINT\n\n"
    "signals: SIGTERM, SIGUSR1 and SIGINT save a checkpoint and end with 75; a second\n"
    "SIGINT ends at once; SIGHUP saves a checkpoint and goes on. SIGINT stays ignored\n"
    "where it was, as a shell does for what a script runs in the background.\n\n"
    "examples:\n"
    "  bpt-train --data fashion --model lenet --output runs/one\n"
    "  mpirun -np 4 --hostfile hosts --map-by node --bind-to none \\\n"
    "      bpt-train --check --data /data/fashion --output /shared/runs/four\n"
    "  mpirun -np 4 --hostfile hosts --map-by node --bind-to none \\\n"
    "      bpt-train --data /data/fashion --model lenet --output /shared/runs/four\n"
    "  mpirun -np 4 --hostfile hosts --map-by node --bind-to none \\\n"
    "      bpt-train --data /data/fashion --data-mode scatter \\\n"
    "      --scratch /var/tmp/bpt --model lenet --output /shared/runs/scattered\n"
    "  mpirun -np 4 --hostfile hosts --map-by node --bind-to none \\\n"
    "      bpt-train --data /nfs/fashion --stage /var/tmp/bpt --model lenet \\\n"
    "      --output /nfs/runs/staged\n"
    "  bpt-train --config runs/one/config.yaml --output runs/two --seed 2\n"
    "  bpt-train --model lenet --bench 20";

const char bpt_train_freeze_help[] =
    "layers before this one stay as they begin, by --init-weights: they\n"
    "compute as in an evaluation, learn nothing and are not exchanged, so\n"
    "that steps and exchanges take less; the first one to learn is LAYER";

const char bpt_train_order_help[] =
    "order of samples: all at random; for cold disks and file servers\n"
    "blocks of neighbours at random, their samples shuffled among 16 blocks\n"
    "at a time; or as they are stored, for data that were shuffled then";

const char bpt_train_update_help[] =
    "how ranks learn from each other: agwu merges weights as they come,\n"
    "nobody waits; sgwu averages weights, all wait; easgd ties the weights\n"
    "of each rank to a common centre, nobody waits; allreduce sums\n"
    "gradients at every step; local is one rank by itself;\n"
    "default is local on one rank and agwu on several; auto measures, and\n"
    "takes allreduce where that costs little of the ranks' speed, else agwu";

const char bpt_train_sync_every_help[] =
    "under agwu, sgwu and easgd: steps of a rank between exchanges; or a\n"
    "part of an epoch, e.g. 0.05ep; auto: 4, and where nobody waits up to\n"
    "32 where exchanging takes a rank more than 2 % of its time";

const char bpt_train_servers_help[] =
    "under agwu, sgwu and easgd: the last N ranks hold the global weights\n"
    "and train nothing, the others hold none; 0: all ranks do both";

const char bpt_train_gamma_help[] =
    "under agwu: how the age of the weights that a push grew from counts:\n"
    "recalled by their part of all versions (after BPT-CNN), lag by how\n"
    "many came since, none not at all";

const char bpt_train_placement_help[] =
    "under allreduce and agwu: first of the layers that one rank has for\n"
    "all: activations travel in place of their gradients; auto: where\n"
    "measurements say that this is faster; off: every rank has all";

const char bpt_train_shared_momentum_help[] =
    "under agwu and sgwu, with sgd: after an exchange a rank goes on with\n"
    "the momentum of all in place of its own, so much of it that in the\n"
    "long run a gradient counts GAIN times what it counts by --momentum\n"
    "alone; 0: each keeps its own; auto: root of the ranks where\n"
    "--lr-scale multiplies --lr, of unequal ones less, by their shares of\n"
    "the data; else 0, and beside --server-momentum,\n"
    "--delay-compensation, --gamma lag and placed layers";

const char bpt_train_device_help[] =
    "what computes: the processor's cores, or an NVIDIA GPU, which has the\n"
    "whole network, of several rank i of a host the i-th, or all the one\n"
    "named as cuda:1; cuda+cpu: both, as is fastest; auto: a GPU if one\n"
    "is left, without --tuned and --placement LAYER, else the cores";

const char bpt_train_precision_help[] =
    "what activations and their gradients are in memory: floats, or\n"
    "bfloat16, which is faster and takes half the memory; weights and sums\n"
    "stay floats. bf16 needs a processor or GPU that multiplies it; auto is\n"
    "bf16 there and fp32 elsewhere; bf16-emulated does without, slowly, on\n"
    "cores; tf32, on a GPU: floats, multiplied with less precision";

const char bpt_train_step_limit_help[] =
    "with sgd: a step moves the weights of no layer by more than C times\n"
    "their length, momentum aside; auto: 0.01 where --lr-scale makes the\n"
    "rate that of several ranks, else no limit; 0: no limit";

const char bpt_train_server_momentum_help[] =
    "under agwu and sgwu: what every update of the global weights keeps of\n"
    "their change before; in the long run a push counts 1/(1-B) times, so\n"
    "lower --lr or give --lr-scale none; 0: none";

const char bpt_train_tuned_help[] =
    "file of bpt-tune for this machine, model and batch: its threads,\n"
    "policy, ... count where these options are not given, and convolutions\n"
    "are cut by its costs; %h in its path stands for the name of the host";

const char bpt_train_quality_help[] =
    "under agwu and sgwu: whether a push also counts by how good the rank's\n"
    "weights are: held-out judges them at every push by a batch of\n"
    "training images that no rank trains on";

const char bpt_train_stall_timeout_help[] =
    "end the job, with status 1, when a rank waits for so long; 0: never,\n"
    "under --check after 60";

const char bpt_train_warmup_help[] =
    "epochs in which the rate grows from 0; unless given, at most half of\n"
    "the run, and onecycle has 0";

"""Explanations of the codes of importers, for ``collc explain``."""

from __future__ import annotations

__all__ = ["CODES"]

CODES = {
    "C0921": """a file that no importer recognizes

collc recognizes what machines print by its content. The file begins like none of the formats that
`collc formats` lists.

    collc import notes.txt

Name the format (`--format slurm`), or look whether the file is complete.""",
    "C0922": """an unknown format to import

    collc import node.txt --format nvidia

Write one of the formats that the hint lists, or leave the option out.""",
    "C0923": """a figure that the file does not have

Some files name links without their bandwidth. collc does not invent it.

    collc import topo.txt

Give the figure as the hint says: on the command line, or in `with { .. }` after an `import`.""",
    "C0924": """text that the importer does not understand

The caret points at the text, and the message says what the format has there.""",
    "C0925": """an unknown model of GPU

    collc import topo.txt --gpu h10

Write one of the models that the hint lists. For another model give the bandwidth of its links: `--gpu-link 25GB/s`.""",
    "C0926": """text that is not a bandwidth

    collc import topo.txt --nic 400

Write bits (`400Gbps`) or bytes (`50GB/s`) per second.""",
    "C0927": """text that is not XML, or XML with declarations

Elements and attributes are read. Entities and document types with declarations of their own are refused, because they
can name other files or grow without limit.""",
    "C0928": """text that is not JSON

Also refused are more than 200 levels of nesting, numbers of more than 300 digits, NaN and infinity.""",
    "C0929": """text that is not YAML, or YAML with references

Anchors, aliases and tags are refused, because a small text with them can describe a huge value.""",
    "C0930": """a node twice

Two elements of a file have the same name, so links cannot name them.""",
    "C0931": """a name that no node can have

Names of nodes have at most 255 printable characters, and no `"`.""",
    "C0932": """a file without ranks

Collectives run on GPUs or hosts. The file has none.""",
    "C0933": """more nodes or links than the limit

A network may have 20,000 nodes, and 20 links for each of them. Look for a wrong number in the file, or raise the limit:

    collc import fabric.txt --node-limit 100000""",
    "C0934": """a machine and a fabric that are not both

`--fabric` needs a file whose ranks are hosts, such as the output of ibnetdiscover or Slurm's topology.conf. The files
before it describe machines.

    collc import node.xml --fabric other.xml
    collc import fabric.txt --fabric other.txt

Give the machine, and then the description of the fabric.""",
    "C0935": """another number of host lists than machines

With several machines, `--hosts` is given once for each file, in the order of the files.

    collc import h100.xml a100.xml --fabric fabric.txt --hosts 'n[1-8]'

Add the hosts of the second machine: `--hosts 'm[1-4]'`.""",
    "C0940": """a figure that was assumed

The file lacks a figure, and collc took the one that the message names, from the source in parentheses. The `.coll` file
has a comment for it. Give the figure yourself to replace it.""",
    "C0941": """something in the machine that looks broken

An element differs from its peers. Examples are a GPU that lacks the links of the others, a cable that only one end
lists, a port of half the width, and a host with fewer NICs. The network has it as the file describes it.""",
    "C0942": """text that was ignored

The importer skipped text that is not part of the format. The network does not depend on it.""",
    "C0950": """a text that is no list of hosts

    cluster pod = h100 on fabric { hosts: "n[001-" };

Lists are as Slurm writes them: names with ranges of numbers in brackets, between commas. A number has the leading zeros
of the first one of its range.

Write `"n[001-016,020],login1"`.""",
    "C0951": """a machine without NICs

    topology h100 { rank gpu[8]; switch nv; .. }
    cluster pod = h100 on fabric;

NICs join a machine to a fabric. They are the nodes linked to the machine's switch `fabric` or `fabric/..`, of which
`nic: PATTERN` chooses some. In a machine without this switch, the pattern alone says which nodes are NICs.

Write `cluster pod = h100 on fabric { nic: mlx5_* };`, or link the NICs to a `switch fabric;`.""",
    "C0952": """NICs without a port, or ports without a NIC

    cluster pod = h100 on fabric;                          # 8 NICs, and a host with 3 links

A switch of the fabric that is linked to a host and called `HOST/NIC` is the port of that NIC. Each NIC needs one port
and each port one NIC. A host without ports needs one link for all NICs, or one for each. The message lists what has no
partner.

Choose NICs and ports by `nic: mlx5_*`, or correct the names in one of the files.""",
    "C0953": """a name of two nodes, or a long name, in a cluster

Nodes of a machine's copy are called `HOST/NAME`. The fabric has a node of this name that is no port of the host, or the
name has more than 255 characters.

Rename the node in the file.""",
    "C0954": """NICs or ports that do not join

The pattern of `nic` leaves out some NICs of the machine, or ports of the fabric. They carry no data of the cluster.

Write another pattern if they belong to the fabric: `nic: *` takes all.""",
    "C0955": """NICs and ports with other names, joined in order

    machine: mlx5_0, mlx5_1        fabric: n001/HCA-1, n001/HCA-2

Their number is the same, so the first NIC joins the first port, and so on. Compare the list with the machine.""",
    "C0956": """hosts that stay ranks

    collc import node.xml --fabric fabric.txt --hosts 'n[001-004]'

The fabric also has `n005`, which no list names. It remains a rank, so a collective has its data too. Name it in
`--hosts`, or leave it out in a `.coll` file: `topology gpus = without(cluster, {n005});`.""",
    "C0960": """the speeds of NVLinks without the matrix

`nvidia-smi nvlink -s` prints how fast the links of each GPU are, but not where they lead. The matrix says that.

    collc import links.txt

Add the output of `nvidia-smi topo -m`: `collc import topo.txt links.txt`, or put both into one file.""",
    "C0961": """more NVLinks than the GPU has

The matrix has a number of NVLinks between two GPUs that their model does not have.

    collc import topo.txt --gpu v100

Give the model of the machine's GPUs: `nvidia-smi -L` prints it.""",
    "C0962": """tables of GPUs without the links between them

The text has weights, hops or access of pairs of GPUs, but neither link types nor bandwidths.

    collc import weights.txt

Print all tables: `rocm-smi --showtopo` or `amd-smi topology`.""",
    "C0963": """a text that is too long for tables

The output of a machine about its GPUs has at most some thousand words. This text is a log or something else.

    collc import syslog.txt --format nvidia-smi

Copy the tables into a file of their own.""",
    "C0970": """several files of a format that describes a network in one

    collc import node.xml --fabric a.topo --fabric b.topo

Give one file. InfiniBand fabrics and lines of `topology.conf` may be in several files of one format.""",
    "C0971": """a switch that the file does not declare

    SwitchName=root Switches=leaf[1-3]
    SwitchName=leaf1 Nodes=n[1-8]

Add a line for each child, or correct the list.""",
    "C0972": """a switch below itself

    SwitchName=a Switches=b
    SwitchName=b Switches=a

The lists of children must be a tree, or several trees that share switches.""",
    "C0974": """a choice that the file does not have

A file with several topologies, or with parts that nothing joins, has names to choose from. The hint lists them.""",
    "C0975": """numbers that contradict each other

The ports, bundles and pods of a tree of switches must fit together: every port up has a port down at the other end. The
message says which number would fit.""",
    "C0980": """a kind of node that no network has

In a graph, a node that holds data has the kind `rank`, `gpu` or `host`. A node that only passes data on has the kind
`switch`, `nic`, `nvswitch`, `cpu`, `pci` or `router`. A node without a kind is a rank. Only switches have `multicast`
and `reduces`, which are true or false.

    "nodes": [{"id": "leaf1", "kind": "swich"}]

Write one of these kinds, or leave it out.""",
    "C0981": """a number that no link or profile can have

A bandwidth is above 0, a latency at least 0. In a graph, plain numbers have these units: `bw` GB/s, `lat` us,
`bandwidth` the graph's `unit`, and `latency` seconds.

    n1 -> n2 [bw="fast"];

Write a number, or one with its unit: `bw="25 GB/s"`, `lat="1.5 us"`.""",
    "C0982": """two bandwidths or latencies for one link, or two units in one graph

    "edges": [{"source": 0, "target": 1, "bw": 25, "bandwidth": 1}]

Write `bw` or `bandwidth`, `lat` or `latency`. Plain numbers of `bandwidth` are relative unless the graph has
`unit: "B/s"`; give all links bytes per second, or all of them relative bandwidths.""",
    "C0983": """an edge to an unknown node

The edge names a node that the graph does not declare.

    "nodes": [{"id": "n1"}], "edges": [{"source": "n1", "target": "n2"}]

Declare the node, or correct the name.""",
    "C0984": """a figure that looks wrong by a factor

collc keeps the figures of the file. A latency of more than a second may be one in milliseconds: write the unit,
`25 ms`. In a profile of TACCL, links between GPUs that are slower than 5 GB/s may come from times with a factor, as its
guide advises. Divide all times of the file by the factor.""",
    "C0985": """several networks in one file

    collc import two.dot

Choose one by its name: `--choose pod`.""",
    "C0986": """a switch of msccl-tools that no network expresses

A switch of msccl-tools is a limit on the sum of several links. collc writes a switch that all these links pass. That is
another network if the switch joins ranks without a link, or if the links have smaller bandwidths of their own.

    "switches": [[[0, 1], [2, 3], 1, "half"]]      # and there is no link from 0 to 3

Write the limit for all pairs of its sources and destinations, or write the topology in a `.coll` file.""",
}

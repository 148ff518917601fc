"""Two examples of each command, as its ``--help`` shows them: tests run or read every one."""

from typing import NamedTuple


class Example(NamedTuple):
    """A line for the shell, and what it is for."""

    purpose: str
    line: str


_SERVE = "wafertlm serve --model llama3-8b --chip flat32 --scheduler chunked"
_LOAD = "--workload sharegpt --rate 4 --requests 200"
_GEMM = "--chip wse2 --grid 120x120 --shape 4096,4096,4096"

EXAMPLES = {
    "doctor": (
        Example("What is missing on this machine", "wafertlm doctor"),
        Example("The same for a script", "wafertlm doctor --json"),
    ),
    "calibrate": (
        Example("Measure what changed of the project's Verilog", "wafertlm calibrate --workers 2"),
        Example(
            "A first look at a router of your own",
            "wafertlm calibrate --rtl my_router/mask_mesh.toml --quick",
        ),
    ),
    "noc": (
        Example(
            "Latency and load of random traffic",
            "wafertlm noc --mesh 8x8 --traffic uniform --rate 0.2",
        ),
        Example(
            "A multicast on the Verilog itself",
            "wafertlm noc --mesh 4x4 --collective multicast --group row --source 1,0 --flits 16 "
            "--level rtl",
        ),
    ),
    "memory": (
        Example("What random requests get of HBM3", "wafertlm memory --pattern random"),
        Example(
            "The same under another controller",
            "wafertlm memory --pattern random --policy dramsim3",
        ),
    ),
    "kernel": (
        Example("A product on a part of a wafer", f"wafertlm kernel mesh-gemm {_GEMM}"),
        Example(
            "The same kernel, packet by packet",
            "wafertlm kernel mesh-gemm --chip wse2 --grid 8x8 --shape 256,256,256 --level at",
        ),
    ),
    "check": (
        Example("Does a kernel suit the wafer's routers?", f"wafertlm check mesh-gemm {_GEMM}"),
        Example("All methods of a product, side by side", f"wafertlm check --methods {_GEMM}"),
    ),
    "dies": (
        Example(
            "Time of a collective between dies",
            "wafertlm dies --chip flat32-wafer --collective all-to-all --bytes 65536",
        ),
        Example(
            "Overlapped with the kernels before it",
            "wafertlm dies --chip flat32-wafer --collective all-reduce --bytes 65536 "
            "--kernel-s 1e-5 --repeat 4",
        ),
    ),
    "iteration": (
        Example(
            "A decode step, kernel by kernel",
            "wafertlm iteration --model llama3-8b --chip flat32 --decode 16@1024",
        ),
        Example(
            "A prompt that is 512 tokens long",
            "wafertlm iteration --model llama3-8b --chip flat32 --prefill 512",
        ),
    ),
    "serve": (
        Example("Times to first token at a rate", f"{_SERVE} {_LOAD}"),
        Example(
            "The highest rate that keeps objectives",
            f"{_SERVE} {_LOAD} --slo-ttft 1 --slo-tbt 50 --find-rate",
        ),
    ),
    "compare": (
        Example(
            "What deeper buffers are worth",
            "wafertlm compare noc --mesh 8x8 --traffic uniform --rate 0.3 --vary fifo-depth=4,8",
        ),
        Example(
            "What a slower router costs a kernel",
            "wafertlm compare kernel mesh-gemm --chip wse2 --grid 32x32 --shape 1024,1024,1024 "
            "--vary set:noc.hop_cycles=1,2",
        ),
    ),
    "gates": (
        Example("Gates of a router with deeper buffers", "wafertlm gates mesh --set FifoDepth=8"),
        Example(
            "A router of your own, with what it switches",
            "wafertlm gates my_router/mask_mesh.toml --toggles",
        ),
    ),
    "explore": (
        Example("Trials of what a file asks for", "wafertlm explore depth.toml --trials 99"),
        Example(
            "Many machines on one study",
            "wafertlm explore depth.toml --storage postgresql://me@host/studies --workers 8",
        ),
    ),
    "show": (
        Example("A chip's file, to change", "wafertlm show chip flat32"),
        Example(
            "A router's Verilog, to change",
            "wafertlm show router mask-mesh --out my_router",
        ),
    ),
    "study": (
        Example("A paper's figures, row by row", "wafertlm study npusim --quick"),
        Example(
            "The same, kept so that it can go on",
            "wafertlm study waferllm --quick --resume runs --out results/waferllm.json",
        ),
    ),
    "replay": (
        Example("The worst case, with a wave", "wafertlm replay traffic --wave traffic.vcd"),
        Example("Which cases there are", "wafertlm replay traffic --list"),
    ),
    "report": (
        Example("All of results/ as a page", "wafertlm report"),
        Example(
            "Another folder, another page",
            "wafertlm report --results results/demo --out demo.html",
        ),
    ),
}

#: What is shown where no command was given.
FIRST = (EXAMPLES["kernel"][0], EXAMPLES["serve"][0])

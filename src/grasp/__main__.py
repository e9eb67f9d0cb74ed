"""The command: grasp train, evaluate, look, lens, agents, release, pretrain, sweep, reproduce,
report, export, figure, check, check-env.

What can be refused without JAX is refused before it is imported; every refusal is one sentence and
an exit code (`errors.py`).
"""

import contextlib
import dataclasses
import importlib.util
import json
import os
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import tyro

from grasp.agents import AGENTS
from grasp.campaigns import export, figure, report, sweep
from grasp.command_line import parse, prepare_jax, seed_list, too_short_to_learn, train_flags
from grasp.environments import OPTION_TASKS, TASKS
from grasp.errors import NO_MEMORY, GraspError, UsageError, says_out_of_memory
from grasp.releases import agents, release
from grasp.reproduction import reproduce

USAGE = f"""\
usage: grasp COMMAND ...

  grasp train AGENT --task TASK     train an agent, or continue its run
  grasp evaluate RUN                play greedy episodes with a trained agent (--video: an mp4)
  grasp look RUN                    draw where each head's option leads on an option task
  grasp lens RUN                    open a page that shows the agent decide and the run learn
  grasp agents                      list the trained agents that came with the package
  grasp release RUN                 make such an agent of a run
  grasp pretrain TASK               train the option policies of a task from scratch
  grasp sweep --agents A ... --tasks T ... --seeds S ...   many runs, each once
  grasp reproduce FIGURE            make the runs of a figure of the paper and draw it (--list)
  grasp report RUNS_OR_RESULTS      one HTML page of a set of runs, with the paper's claims
  grasp export RUN ...              write finished runs as result files under results/
  grasp figure FOLDER               draw the learning curves of results/<suite>
  grasp check RUN                   verify every file of a run directory
  grasp check-env TASK              find faults of an environment; can its runs be resumed exactly?

agents: {" ".join(AGENTS)}, and any other K (GA-6)
tasks:  {" ".join(TASKS)}
        dmc:DOMAIN-TASK (any suite task), gym:ID (any Gymnasium task with continuous actions),
        pixels:TASK (either of them seen as images; `--pixels` says the same)

RUN is a run directory, or the name of an agent that `grasp agents` lists.
`grasp COMMAND --help` lists the flags of a command.
"""


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    commands: dict[str, Callable[[list[str]], int]] = {
        "train": train,
        "evaluate": evaluate,
        "look": look,
        "lens": lens,
        "agents": agents,
        "release": release,
        "pretrain": pretrain,
        "sweep": sweep,
        "reproduce": reproduce,
        "report": report,
        "export": export,
        "figure": figure,
        "check": check,
        "check-env": check_env,
    }
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, end="")
        return 0 if arguments else 2
    if arguments[0] == "--version":
        import grasp

        print(f"grasp {grasp.__version__}")
        return 0
    try:
        if arguments[0] not in commands:
            raise UsageError(f"unknown command {arguments[0]!r}; commands: {', '.join(commands)}")
        return commands[arguments[0]](arguments[1:])
    except GraspError as problem:
        print(f"grasp: {problem}", file=sys.stderr)
        return problem.exit_code
    except (MemoryError, RuntimeError) as problem:
        if not says_out_of_memory(problem):
            raise
        sizes = "--width, --batch, --num-envs or --replay-capacity"
        print(f"grasp: not enough memory ({problem}); take a smaller {sizes}", file=sys.stderr)
        return NO_MEMORY
    except KeyboardInterrupt:  # before or after training, which saves when it is asked to stop
        print("grasp: stopped by SIGINT", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def train(arguments: list[str]) -> int:
    flags = train_flags(arguments)

    from grasp.progress import ProgressLine
    from grasp.session import Interrupted
    from grasp.session import train as run_training

    if note := too_short_to_learn(flags):
        print(f"grasp: {note}", file=sys.stderr)
    settings = dataclasses.asdict(flags.schedule)
    if flags.seeds is not None:
        settings["seeds"] = seed_list(flags.seeds)
    with ProgressLine(flags.schedule.steps) as line:
        try:
            trained = run_training(
                flags.agent,
                flags.task,
                run=flags.run,
                label=flags.label,
                sight=flags.sight,
                wandb=flags.wandb,
                show=line.show,
                own_process=True,
                **settings,
            )
        except Interrupted as interrupted:
            print(f"\n{interrupted}", file=sys.stderr)
            return 128 + interrupted.signal
    for agent in trained if isinstance(trained, list) else [trained]:
        last = agent.run.evaluations()[-1]
        success = f", success {last['eval/success']:.1%}" if "eval/success" in last else ""
        print(
            f"{flags.label} on {flags.task}: return {last['eval/return']:.4g}{success} "
            f"(mean of {len(last['eval/returns'])} greedy episodes) "
            f"after {last['environment_steps']:,} steps, {last['decisions']:,} decisions"
        )
        print(f"run: {agent.run.path}   picture: {agent.run.curve}")
    return 0


def evaluate(arguments: list[str]) -> int:
    @dataclasses.dataclass(frozen=True)
    class Evaluate:
        """Play episodes with the agent of a run, without noise, from starts that training never
        saw.
        """

        run: tyro.conf.Positional[Path]  # run directory, or a released agent
        episodes: int = 10  # from starts of their own
        seed: int = 0  # of those starts
        which: Literal["last", "best"] = "last"  # the last agent, or that of the best evaluation
        heads: Literal["greedy", "sampled", "random"] | int = "greedy"  # best, drawn, none, or this
        video: bool = False  # film the first episode, with its heads and their Q: RUN/episode.mp4
        json: bool = False  # print one JSON object instead of text

    flags = parse(Evaluate, "grasp evaluate", arguments)
    if flags.episodes < 1:
        raise UsageError(f"--episodes is {flags.episodes}; it must be at least 1")
    if flags.video:
        from grasp.videos import check_video

        check_video()

    from grasp.runs import Run

    Run.existing(flags.run)
    prepare_jax()
    from grasp.evaluation import score
    from grasp.progress import episode_line
    from grasp.session import load

    agent = load(flags.run, flags.which)
    if flags.video:
        path = flags.run / "episode.mp4"
        frames = agent.film(path, flags.seed, flags.heads)
        print(f"{path}: {frames} frames of the first episode", file=sys.stderr)
    quiet = flags.json or flags.episodes > 100
    episodes = agent.evaluate(
        flags.episodes,
        flags.seed,
        (lambda episode: None) if quiet else episode_line,
        heads=flags.heads,
    )
    found = score(episodes)
    if flags.json:
        returns = [round(episode.returned, 4) for episode in episodes]
        print(json.dumps({"choice": flags.heads} | found._asdict() | {"returns": returns}))
        return 0
    used = ", ".join(f"{head}: {share:.0%}" for head, share in found.heads.items())
    won = "" if found.success is None else f", success {found.success:.1%}"
    won += "".join(f", {name} {count:.2f}" for name, count in found.counts.items())
    print(
        f"return {found.mean:.2f} ± {found.deviation:.2f}{won} over {found.episodes} {flags.heads} "
        f"episodes; heads used: {used}"
    )
    return 0


def look(arguments: list[str]) -> int:
    @dataclasses.dataclass(frozen=True)
    class Look:
        """Draw where each head's option leads from several starts, and count from random starts
        which objects the options take.
        """

        run: tyro.conf.Positional[Path]  # run directory, or a released agent
        to: Path | None = None  # picture file; RUN/affordances.png, or NAME-affordances.png here
        starts: int = 1000  # random starts to count over
        which: Literal["last", "best"] = "last"  # the last agent, or that of the best evaluation
        json: bool = False  # print one JSON object instead of text

    flags = parse(Look, "grasp look", arguments)
    if flags.starts < 1:
        raise UsageError(f"--starts is {flags.starts}; it must be at least 1")

    from grasp.runs import Run

    run = Run.existing(flags.run)
    prepare_jax()
    from grasp.evaluation import all_different, next_on_a_head
    from grasp.progress import CountLine
    from grasp.session import load

    agent = load(flags.run, flags.which)
    usual = Path(f"{run.path.name}-affordances.png") if run.released else None
    picture = flags.to or usual or run.path / "affordances.png"
    agent.draw(picture)
    resets = [{"seed": seed} for seed in range(flags.starts)]
    with CountLine("starts looked at", flags.starts) as line:
        found, model = agent.outlooks(resets, line.show), agent.judged(resets)
    counted = {
        "starts": flags.starts,
        "all_three_objects": all_different(found),
        "next_object": next_on_a_head(found),
        "nothing": sum(o.picked.count(None) for o in found) / sum(len(o.picked) for o in found),
        "q_values": model._asdict(),
    }
    if flags.json:
        print(json.dumps(counted))
        return 0
    in_order = bool(found[0].scene.order)
    things, wanted = ("objects", "the one asked for first") if in_order else ("apples", "an apple")
    print(
        f"from {flags.starts} random starts the heads' options take all three {things} in "
        f"{counted['all_three_objects']:.1%}, {wanted} in "
        f"{counted['next_object']:.1%}; {counted['nothing']:.1%} of options take nothing"
    )
    print(
        f"Q of an option at {wanted} {model.next_object:.3f}, "
        f"at the others {model.other_objects:.3f}, anywhere {model.random:.3f}"
    )
    print(f"picture: {picture}")
    return 0


def lens(arguments: list[str]) -> int:
    @dataclasses.dataclass(frozen=True)
    class Lens:
        """Open a page, on this machine only, that shows the agent of a run decide: its heads, its
        tree, its episodes, and the curves of the run, finished or not.
        """

        run: tyro.conf.Positional[Path]  # run directory, or a released agent
        port: int = 0  # on 127.0.0.1; any free one unless given
        browser: bool = True  # open the page in the browser, or only print its address
        which: Literal["last", "best"] = "last"  # the last agent, or that of the best evaluation

    flags = parse(Lens, "grasp lens", arguments)
    from grasp.runs import Run

    run = Run.existing(flags.run)
    missing = [name for name in ("starlette", "uvicorn") if not importlib.util.find_spec(name)]
    if missing:
        raise UsageError(
            f"the Lens needs {' and '.join(missing)}, not installed here; "
            "install the extra: pip install 'grasp-rl[lens]'"
        )
    prepare_jax()
    from grasp.lens.server import Lens as Server
    from grasp.lens.view import View

    server = Server(View(run, flags.which), flags.port)
    print(f"the Lens on {run.path}: {server.url}", flush=True)
    print("Ctrl-C ends it", flush=True)
    if flags.browser:
        webbrowser.open(server.url)
    with contextlib.suppress(KeyboardInterrupt):
        server.run()
    return 0


def pretrain(arguments: list[str]) -> int:
    if arguments and not arguments[0].startswith("-") and arguments[0] not in OPTION_TASKS:
        raise UsageError(
            f"{arguments[0]!r} has no options to pretrain; option tasks: {', '.join(OPTION_TASKS)}"
        )
    prepare_jax()
    from grasp.environments import primitive
    from grasp.options import WEIGHTS, write_options
    from grasp.pretraining import SETTINGS, Pretraining
    from grasp.pretraining import pretrain as run_pretraining

    usual = SETTINGS[arguments[0]] if arguments and arguments[0] in SETTINGS else Pretraining()

    @dataclasses.dataclass(frozen=True)
    class Pretrain:
        """Train the option policies of a task by reinforcement learning and write their weights."""

        task: tyro.conf.Positional[str]  # an option task
        settings: Annotated[Pretraining, tyro.conf.arg(name="")] = usual
        to: Path = WEIGHTS  # folder of the weights; the package's own unless given
        run: Path | None = None  # where an interrupted one continues; runs/pretrain-TASK

    flags = parse(Pretrain, "grasp pretrain", arguments)
    environment, reaching = primitive(flags.task)
    folder = flags.run or Path("runs") / f"pretrain-{flags.task}"
    options, report = run_pretraining(
        reaching,
        environment,
        flags.settings,
        lambda steps, share: print(f"{steps:,} steps: {share:.0%} reached", file=sys.stderr),
        folder,
    )
    report["command"] = " ".join(["grasp", "pretrain", *arguments])
    path = write_options(options, report, flags.to)
    print(f"{report['reached']:.1%} of {report['goals']} random options reached; written to {path}")
    return 0


def check(arguments: list[str]) -> int:
    from grasp.checking import check as run_check

    return run_check(arguments)


def check_env(arguments: list[str]) -> int:
    from grasp.checking import check_env as run_check

    return run_check(arguments)


if __name__ == "__main__":
    sys.exit(main())

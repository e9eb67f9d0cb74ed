"""How fast does the image encoder learn where things are? From pictures of random decisions it and
a small network learn the task's own features; the share of their variance that they explain on new
pictures is printed and written as a line of results/ablations/images.csv. Minutes on one core: the
cheapest place to see whether a change of the encoder helps.

    python tools/image_probe.py --task walker-walk --random-shift 2
"""

import csv
import dataclasses
import time
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro

from grasp.environments import make
from grasp.environments.frames import Sight
from grasp.images import ImageEncoder, Images, randomly_shifted
from grasp.networks import MLP

FRESH = 2_000  # pictures that nothing is learned from
TABLE = Path("results/ablations/images.csv")


@dataclasses.dataclass(frozen=True)
class Settings:
    task: str = "walker-walk"
    decisions: int = 12_000
    updates: int = 1_200
    batch: int = 64
    learning_rate: float = 1e-3
    random_shift: int = 2
    scale: Literal["own", "bytes"] = "own"  # mean 0 and deviation 1, or bytes in [-0.5, 0.5]


class Bytes(ImageEncoder):
    """The encoder without standardised observations."""

    def scaled(self, image: Any, observation: Any) -> Any:
        return image.astype(jnp.float32) / 255 - 0.5


class Probe(eqx.Module):
    encoder: ImageEncoder
    head: MLP

    def __call__(self, picture: Any) -> Any:
        return self.head(self.encoder(picture))


def pictures(task: str, count: int) -> tuple[np.ndarray, np.ndarray, Images]:
    """Observations [count, size] and features [count, f] of drifting random actions."""
    world: Any = make(f"pixels:{task}", sight=Sight(action_repeat=2))
    random, action = np.random.default_rng(0), np.zeros(world.action_space.shape)
    seen, features = [], []
    observation, _ = world.reset(seed=0)
    for number in range(count):
        body = world.unwrapped
        parts = body._environment.task.get_observation(body.physics).values()
        seen.append(np.ravel(observation))
        features.append(np.concatenate([np.ravel(part) for part in parts]))
        action = np.clip(0.7 * action + 0.5 * random.normal(size=action.shape), -1, 1)
        observation, _, terminated, truncated, _ = world.step(action.astype(np.float32))
        if terminated or truncated:
            observation, _ = world.reset(seed=number)
    return np.stack(seen), np.stack(features).astype(np.float32), world.images


def main(settings: Settings) -> None:
    seen, features, images = pictures(settings.task, settings.decisions)
    images = images._replace(random_shift=settings.random_shift)
    wanted = (features - features.mean(0)) / (features.std(0) + 1e-6)
    wanted = np.clip(wanted, -5, 5)
    key, known = jax.random.key(0), len(seen) - FRESH
    kind: Any = ImageEncoder if settings.scale == "own" else Bytes
    probe = Probe(
        encoder=kind(images, 128, width=128, norm=True, key=key),
        head=MLP([128], wanted.shape[1], width=128, hidden=1, key=jax.random.fold_in(key, 1)),
    )
    arrays, static = eqx.partition(probe, eqx.is_inexact_array)
    optimiser = optax.adam(settings.learning_rate)
    moments = optimiser.init(arrays)

    def guessed(arrays: Any, pictures: Any) -> Any:
        return jax.vmap(eqx.combine(arrays, static))(pictures)

    @jax.jit
    def update(arrays: Any, moments: Any, pictures: Any, answers: Any, at: Any) -> Any:
        def loss(arrays: Any) -> Any:
            moved = randomly_shifted(pictures, images, at)
            return jnp.mean((guessed(arrays, moved) - answers) ** 2)

        changes, moments = optimiser.update(jax.grad(loss)(arrays), moments)
        return optax.apply_updates(arrays, changes), moments

    random, began, explained = np.random.default_rng(0), time.process_time(), []
    for number in range(1, settings.updates + 1):
        rows = random.integers(0, known, settings.batch)
        at = jax.random.fold_in(key, number)
        arrays, moments = update(arrays, moments, seen[rows], wanted[rows], at)
        if number % max(settings.updates // 4, 1) == 0:
            parts = [guessed(arrays, part) for part in np.array_split(seen[known:], 8)]
            missed = np.mean((np.concatenate(parts) - wanted[known:]) ** 2, axis=0)
            explained.append(1 - float(np.mean(missed / wanted[known:].var(0))))
            print(f"{number:,} updates: {explained[-1]:.3f} explained", flush=True)
    took = 1e3 * (time.process_time() - began) / settings.updates
    new = not TABLE.exists()
    with TABLE.open("a", newline="") as file:
        lines = csv.writer(file)
        if new:
            names = [field.name for field in dataclasses.fields(Settings)]
            quarters = [f"explained_{quarter}_4" for quarter in (1, 2, 3, 4)]
            lines.writerow([*names, *quarters, "cpu_ms_per_update"])
        lines.writerow([*dataclasses.astuple(settings), *(f"{e:.3f}" for e in explained),
                        f"{took:.1f}"])  # fmt: skip


if __name__ == "__main__":
    main(tyro.cli(Settings))

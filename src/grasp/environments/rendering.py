"""Rendering without a screen: EGL where it works, else OSMesa, chosen before MuJoCo is imported.

MuJoCo, dm_control and Gymnasium read the choice from MUJOCO_GL; one that the user made stays, or is
refused where importing MuJoCo would fail by it. Run as a program, this says what was chosen, and
ends with 2 where there is nothing to render with.
"""

import ctypes
import ctypes.util
import os
import sys

from grasp.errors import UsageError

INSTALL = (
    "rendering needs EGL or OSMesa and neither works here: `make rendering` installs it, or "
    "`apt-get install libegl1 libgl1-mesa-dri` (OSMesa: libosmesa6)"
)
OFF = ("disable", "disabled", "off", "false", "0")  # in MuJoCo's words
ON_SCREEN = ("glfw", "glx", "enable", "enabled", "on", "true", "1", "")
KNOWN = (*OFF, *ON_SCREEN, "screen", "egl", "osmesa")
_DEVICES = 16
_PLATFORM_DEVICE = 0x313F  # EGL_PLATFORM_DEVICE_EXT


def choose_renderer() -> str:
    """Set MUJOCO_GL unless it is set, or a screen is there to choose by; returns its value."""
    if "MUJOCO_GL" not in os.environ and "DISPLAY" not in os.environ:
        osmesa = "osmesa" if osmesa_works() else "disable"
        os.environ["MUJOCO_GL"] = "egl" if egl_works() else osmesa
        return os.environ["MUJOCO_GL"]
    chosen = os.environ.get("MUJOCO_GL", "screen").strip().lower()
    if sys.platform == "linux" and chosen not in KNOWN:
        raise UsageError(
            f"MUJOCO_GL is {chosen!r}; it may be egl, osmesa, glfw where there is a screen, or "
            "disable. Unset it, and what works is chosen"
        )
    if (chosen == "egl" and not egl_works()) or (chosen == "osmesa" and not osmesa_works()):
        package = {"egl": "libegl1 libgl1-mesa-dri", "osmesa": "libosmesa6"}[chosen]
        raise UsageError(
            f"MUJOCO_GL is {chosen}, which does not work here: apt-get install {package}, or unset "
            "it, and what works is chosen"
        )
    return chosen


def check_renderer() -> None:
    """Refuse to render where that cannot be."""
    chosen = os.environ.get("MUJOCO_GL", "").strip().lower()
    if chosen in OFF:
        raise UsageError(INSTALL)
    if chosen in ON_SCREEN and "DISPLAY" not in os.environ and sys.platform == "linux":
        raise UsageError(
            f"MUJOCO_GL is {chosen!r}, which renders on a screen, and there is none: unset it"
        )


def osmesa_works() -> bool:
    return ctypes.util.find_library("OSMesa") is not None


def egl_works() -> bool:
    """Whether some device opens a display: a library without drivers has none."""
    found = ctypes.util.find_library("EGL")
    if found is None:
        return False
    egl = ctypes.CDLL(found)
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    names = (b"eglQueryDevicesEXT", b"eglGetPlatformDisplayEXT")
    addresses = [egl.eglGetProcAddress(name) for name in names]
    if not all(addresses):
        return False
    query = ctypes.CFUNCTYPE(
        ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)
    )(addresses[0])
    display_of = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)(
        addresses[1]
    )
    devices, count = (ctypes.c_void_p * _DEVICES)(), ctypes.c_int()
    if not query(_DEVICES, devices, ctypes.byref(count)):
        return False
    egl.eglInitialize.argtypes = [ctypes.c_void_p] * 3
    displays = [display_of(_PLATFORM_DEVICE, device, None) for device in devices[: count.value]]
    return any(display and egl.eglInitialize(display, None, None) for display in displays)


if __name__ == "__main__":
    try:
        renderer = choose_renderer()
        check_renderer()
    except UsageError as problem:
        print(problem)
        sys.exit(2)
    print(f"rendering by {renderer}")

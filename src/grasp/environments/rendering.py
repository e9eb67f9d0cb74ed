"""Rendering without a screen: EGL where it works, else OSMesa, chosen before MuJoCo is imported.

MuJoCo, dm_control and Gymnasium read the choice from MUJOCO_GL; one that the user made stays. Run
as a program, this says what was chosen, and ends with 2 where there is nothing to render with.
"""

import ctypes
import ctypes.util
import os
import sys

INSTALL = (
    "rendering needs EGL or OSMesa and neither works here: `make rendering` installs it, or "
    "`apt-get install libegl1 libgl1-mesa-dri` (OSMesa: libosmesa6)"
)
_DEVICES = 16
_PLATFORM_DEVICE = 0x313F  # EGL_PLATFORM_DEVICE_EXT


def choose_renderer() -> str:
    """Set MUJOCO_GL unless it is set, or a screen is there to choose by; returns its value."""
    if "MUJOCO_GL" not in os.environ and "DISPLAY" not in os.environ:
        osmesa = "osmesa" if ctypes.util.find_library("OSMesa") else "disable"
        os.environ["MUJOCO_GL"] = "egl" if egl_works() else osmesa
    return os.environ.get("MUJOCO_GL", "screen")


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
    chosen = choose_renderer()
    print(INSTALL if chosen == "disable" else f"rendering by {chosen}")
    sys.exit(2 if chosen == "disable" else 0)

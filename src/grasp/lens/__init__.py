"""The Lens: a page on this machine that shows a trained agent decide, and a run learn.

    grasp lens RUN

Nothing here leaves the machine: the server listens on loopback only, and the page asks nobody else.
"""

"""Whether a machine's driver answers: the word in reports about its GPUs."""

NO_DRIVER, OK, FAILED, TIMED_OUT = "no-driver", "ok", "failed", "timed-out"

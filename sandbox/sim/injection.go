package sim

// This file is admission that changes what is written.

type injection struct{}

func (t *trouble) makeInjection(*world) bool { return false }

func (w *world) injects(*call) {}

func (t *trouble) makeGuards(*world) bool { return false }

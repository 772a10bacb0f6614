package sandbox

// This file lists the failures of Start that a caller may want to tell apart. The text of each error is one line that
// says what happened, to what, and what to do.

import "errors"

var (
	// ErrInvalidOptions means that the options contradict themselves or name something unknown.
	ErrInvalidOptions = errors.New("invalid options")
	// ErrPortInUse means that another process listens on the port that was asked for.
	ErrPortInUse = errors.New("port is in use")
	// ErrDataDirUnusable means that the data directory cannot be created, read or written, or holds something else.
	ErrDataDirUnusable = errors.New("data directory cannot be used")
	// ErrDataDirVersion means that the data directory was written by another version of Kubernetes or of this package.
	ErrDataDirVersion = errors.New("data directory is of another version")
	// ErrDataDirLocked means that a running sandbox uses the data directory.
	ErrDataDirLocked = errors.New("data directory is in use")
	// ErrKubeconfig means that the kubeconfig cannot be written, or would overwrite a file that describes other clusters.
	ErrKubeconfig = errors.New("kubeconfig cannot be written")
	// ErrAlreadyRunning means that this process runs a sandbox already. Kubernetes keeps feature gates, metrics and its
	// logger in global variables, so there is one sandbox per process at a time.
	ErrAlreadyRunning = errors.New("a sandbox runs in this process already")
	// ErrStopped means that the sandbox was stopped.
	ErrStopped = errors.New("the sandbox was stopped")
)

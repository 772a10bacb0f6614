package sandbox

// This file owns the data directory: who may use it, what is where in it, and whether what it holds can be read by this
// program.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cairn-dev/cairn/sandbox/internal/kubeversion"
)

// dataFormat is the number of the directory's layout. Raise it when an older layout can no longer be read.
const dataFormat = 1

// temporaryPrefix begins the names of temporary data directories.
const temporaryPrefix = "cairn-sandbox-"

// dataVersion is the content of the version file.
type dataVersion struct {
	Format     int    `json:"format"`
	Kubernetes string `json:"kubernetes"`
}

// dataDir is an open, locked data directory.
type dataDir struct {
	path string
	// temporary: remove the directory when it is closed.
	temporary bool
	// fresh: there was no cluster in it.
	fresh bool
	lock  *os.File
}

// openDataDir creates or opens the directory at path, or makes a temporary one when path is empty. The caller must
// close it.
func openDataDir(path string) (_ *dataDir, err error) {
	d := &dataDir{path: path}
	if path == "" {
		d.temporary = true
		removeAbandoned()
		if d.path, err = os.MkdirTemp("", temporaryPrefix); err != nil {
			return nil, fmt.Errorf("%w: no temporary directory: %w; set TMPDIR to a writable directory", ErrDataDirUnusable, err)
		}
	}
	if d.path, err = filepath.Abs(d.path); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDataDirUnusable, err)
	}
	defer func() {
		if err != nil {
			_ = d.close()
		}
	}()
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w; choose a directory that this user can write", ErrDataDirUnusable, err)
	}
	if err := d.checkOwner(); err != nil {
		return nil, err
	}
	if err := d.takeLock(); err != nil {
		return nil, err
	}
	if err := d.checkVersion(); err != nil {
		return nil, err
	}
	for _, sub := range []string{d.pki(), d.etcd()} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDataDirUnusable, err)
		}
	}
	return d, nil
}

func (d *dataDir) pki() string        { return filepath.Join(d.path, "pki") }
func (d *dataDir) etcd() string       { return filepath.Join(d.path, "etcd") }
func (d *dataDir) kubeconfig() string { return filepath.Join(d.path, "kubeconfig") }
func (d *dataDir) log() string        { return filepath.Join(d.path, "sandbox.log") }
func (d *dataDir) version() string    { return filepath.Join(d.path, "version.json") }
func (d *dataDir) lockFile() string   { return filepath.Join(d.path, "lock") }

// checkOwner refuses a directory that holds something else, before anything is written to it, and closes one of ours to
// other users.
func (d *dataDir) checkOwner() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("%w: %w; choose a directory that this user can read", ErrDataDirUnusable, err)
	}
	if len(entries) > 0 {
		// A start that was killed between the lock and the version file leaves the lock alone.
		onlyLock := len(entries) == 1 && entries[0].Name() == filepath.Base(d.lockFile())
		if _, err := os.Stat(d.version()); errors.Is(err, fs.ErrNotExist) && !onlyLock {
			return fmt.Errorf("%w: %s holds files that are not a sandbox's; choose an empty directory", ErrDataDirUnusable, d.path)
		}
	}
	// The keys in it are the cluster's.
	if err := os.Chmod(d.path, 0o700); err != nil { //nolint:gosec // a directory needs its execute bit
		return fmt.Errorf("%w: %w; choose a directory that this user owns", ErrDataDirUnusable, err)
	}
	return nil
}

// takeLock holds the directory for this process. The kernel releases the lock when the process ends, however it ends.
func (d *dataDir) takeLock() error {
	f, err := os.OpenFile(d.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w; choose a directory that this user can write", ErrDataDirUnusable, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("%w: another sandbox runs in %s; stop it, or choose another directory", ErrDataDirLocked, d.path)
		}
		return fmt.Errorf("%w: cannot lock %s: %w", ErrDataDirUnusable, d.lockFile(), err)
	}
	d.lock = f
	return nil
}

// checkVersion compares the version file with this program, or writes it to an empty directory.
func (d *dataDir) checkVersion() error {
	want := dataVersion{Format: dataFormat, Kubernetes: kubeversion.Version}
	raw, err := os.ReadFile(d.version())
	if errors.Is(err, fs.ErrNotExist) {
		d.fresh = true
		raw, err := json.Marshal(want)
		if err != nil {
			return err
		}
		if err := os.WriteFile(d.version(), append(raw, '\n'), 0o600); err != nil {
			return fmt.Errorf("%w: %w; choose a directory that this user can write", ErrDataDirUnusable, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDataDirUnusable, err)
	}
	var got dataVersion
	if err := json.Unmarshal(raw, &got); err != nil {
		return fmt.Errorf("%w: %s is damaged (%w); choose another directory", ErrDataDirUnusable, d.version(), err)
	}
	if got != want {
		return fmt.Errorf("%w: %s was written by Kubernetes %s, format %d, and this is %s, format %d; choose another directory",
			ErrDataDirVersion, d.path, got.Kubernetes, got.Format, want.Kubernetes, want.Format)
	}
	return nil
}

// removeAbandoned removes the temporary data directories of sandboxes that were killed before they could.
func removeAbandoned() {
	candidates, err := filepath.Glob(filepath.Join(os.TempDir(), temporaryPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range candidates {
		d := &dataDir{path: path, temporary: true}
		// A directory without the lock file may be about to get one. So may one that is a few seconds old.
		info, err := os.Stat(d.lockFile())
		if err != nil || time.Since(info.ModTime()) < time.Minute {
			continue
		}
		if d.takeLock() == nil {
			_ = d.close() // a leftover that cannot be removed stays, as it would without us
		}
	}
}

// close gives the directory free, and removes it when it is temporary.
func (d *dataDir) close() error {
	var err error
	if d.temporary {
		err = os.RemoveAll(d.path)
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
		d.lock = nil
	}
	return err
}

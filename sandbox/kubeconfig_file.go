package sandbox

// This file owns the kubeconfig at a path that somebody chose: no two sandboxes that run have one file, and a sandbox
// removes only what it wrote.

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeconfigFile is a file with the administrator's credentials, which this process holds.
type kubeconfigFile struct {
	path string
	cfg  *rest.Config
	// lock is the file itself. The kernel releases it when the process ends, however it ends.
	lock *os.File
}

// takeKubeconfig writes the file for cfg at path, with mode 0600. It refuses a file that belongs to another cluster, or
// to a sandbox that runs.
func takeKubeconfig(path string, cfg *rest.Config) (_ *kubeconfigFile, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKubeconfig, err)
	}
	f := &kubeconfigFile{path: path, cfg: cfg}
	if err := f.take(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.lock.Close()
		}
	}()
	if err := mayOverwrite(path); err != nil {
		return nil, err
	}
	content, err := KubeconfigOf(cfg)
	if err != nil {
		return nil, err
	}
	// In place: the lock is the file's, and a symbolic link stays one.
	err = errors.Join(f.lock.Chmod(0o600), f.lock.Truncate(0))
	if err == nil {
		_, err = f.lock.WriteAt(content, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w; choose a path that this user can write", ErrKubeconfig, err)
	}
	return f, nil
}

// take opens and locks the file. One that was removed meanwhile, by the sandbox that had it, is made anew.
func (f *kubeconfigFile) take() error {
	for {
		lock, err := os.OpenFile(f.path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return fmt.Errorf("%w: %w; choose a path that this user can write", ErrKubeconfig, err)
		}
		// A file system without locks does not keep anybody from working alone.
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
			_ = lock.Close()
			return fmt.Errorf("%w: %s is that of a sandbox that runs; stop it, or choose another path", ErrKubeconfig, f.path)
		}
		ours, err := lock.Stat()
		if there, gone := os.Stat(f.path); err == nil && gone == nil && os.SameFile(ours, there) {
			f.lock = lock
			return nil
		}
		_ = lock.Close()
	}
}

// ours reports whether the file still holds the credentials that were written. Other parts of it are the users':
// kubectl keeps the namespace there.
func (f *kubeconfigFile) ours() bool {
	raw, err := os.ReadFile(f.path)
	if err != nil {
		return false
	}
	is, err := clientcmd.Load(raw)
	if err != nil || len(is.Clusters) != 1 || is.Clusters[contextName] == nil || is.AuthInfos[contextName] == nil {
		return false
	}
	return is.Clusters[contextName].Server == f.cfg.Host && bytes.Equal(is.AuthInfos[contextName].ClientCertificateData, f.cfg.CertData)
}

// remove removes the file, unless it is somebody else's by now.
func (f *kubeconfigFile) remove() error {
	if !f.ours() {
		return nil
	}
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the kubeconfig: %w", err)
	}
	return nil
}

// release lets another sandbox have the file.
func (f *kubeconfigFile) release() error { return f.lock.Close() }

// Abandon removes the credentials of the temporary sandbox that this process runs, if it runs one, and does not wait
// for anything. It is for a process that is about to end without [Sandbox.Stop]; the cluster is of no use afterwards.
func Abandon() {
	s := running.Load()
	if s == nil {
		return
	}
	s.mu.Lock()
	data, file := s.data, s.file
	s.mu.Unlock()
	if data == nil || !data.temporary {
		return
	}
	if file != nil {
		_ = file.remove()
	}
	// The keys first: etcd may still be writing, and then not everything can be removed.
	_ = os.RemoveAll(data.pki())
	_ = os.RemoveAll(data.path)
}

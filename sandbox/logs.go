package sandbox

// This file keeps the terminal clean: the components' logs go to one writer, and their calls to os.Exit end the sandbox
// in order instead of the process at once.

import (
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	_ "unsafe" // for go:linkname

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	_ "k8s.io/apiserver/pkg/storage/storagebackend/factory" // has apiServerEtcdLogger
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// logSink is the writer that all logging of the process ends in. Components may still log while they are being torn
// down, or just after, so a write never fails and never reaches a file that is closed.
type logSink struct {
	mu        sync.Mutex
	w         io.Writer
	lastError string // the last line of klog's with severity error or worse
}

func (l *logSink) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w != nil {
		_, _ = l.w.Write(p)
	}
	if len(p) > 0 && (p[0] == 'E' || p[0] == 'F') {
		line, _, _ := strings.Cut(string(p), "\n")
		l.lastError = line
	}
	return len(p), nil
}

func (l *logSink) redirect(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.w, l.lastError = w, ""
}

// complaint returns the last error that was logged.
func (l *logSink) complaint() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastError
}

var (
	// sink is global because klog is.
	sink logSink
	// onFatal is called when a component asks for the end of the process.
	onFatal atomic.Pointer[func(code int)]
	// takeOverLogging runs once per process: klog's setters may not run while anything logs.
	takeOverLogging = sync.OnceFunc(func() {
		apiServerEtcdLogger = etcdLogger().Named("etcd-client")
		klog.SetLoggerWithOptions(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&sink))), klog.ContextualLogger(true))
		// klog.Fatal is how the API server reports, for one, a post-start hook that was cut short by a cancelled start.
		// The goroutine that called it must not go on; everything else can be stopped in order.
		exit := klog.OsExit
		klog.OsExit = func(code int) { //nolint:reassign // exported for this
			f := onFatal.Load()
			if f == nil {
				exit(code)
			}
			(*f)(code)
			runtime.Goexit()
		}
	})
)

// apiServerEtcdLogger is the logger of the API server's etcd clients. It writes to the terminal, at each stop for one,
// and the API server has no option for it.
//
//go:linkname apiServerEtcdLogger k8s.io/apiserver/pkg/storage/storagebackend/factory.etcd3ClientLogger
var apiServerEtcdLogger *zap.Logger

// openLog makes an empty file at path.
func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
}

// etcdLogger returns a logger that writes etcd's warnings and errors to the sink; its info lines describe its flags.
func etcdLogger() *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.AddSync(&sink), zapcore.WarnLevel))
}

package supervise

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// maxLogSize bounds a log file; one full file is kept beside the current one as NAME.1.
const maxLogSize = 16 << 20

// logFile is a log that never takes more than twice maxLogSize on disk.
type logFile struct {
	path string

	mu   sync.Mutex
	file *os.File
	size int64
}

func openLog(path string) (*logFile, error) {
	l := &logFile{path: path}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *logFile) open() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening a log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("opening a log: %w", err)
	}
	l.file, l.size = file, info.Size()
	return nil
}

// Write implements io.Writer. A log that cannot be written loses lines and never stops the child that writes them.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return len(p), nil
	}
	if l.size+int64(len(p)) > maxLogSize {
		l.rotate()
	}
	if l.file != nil {
		n, _ := l.file.Write(p)
		l.size += int64(n)
	}
	return len(p), nil
}

func (l *logFile) rotate() {
	_ = l.file.Close()
	l.file = nil
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		_ = os.Remove(l.path)
	}
	_ = l.open()
}

// Close closes the file; later writes are dropped.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// Tail returns the last lines of a log file, for an error message.
func Tail(path string, lines int) string {
	const window = 16 << 10
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > window {
		if _, err := file.Seek(-window, io.SeekEnd); err != nil {
			return ""
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, window))
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

package smtpd

import (
	"log/slog"
	"sync"
	"time"
)

// logRate is how many refusals are logged per second; otherwise refused senders could flood the log.
const logRate = 10

// logText bounds each text of a sender in the log.
const logText = 200

// refusalLog counts and logs mail that is refused.
type refusalLog struct {
	log  *slog.Logger
	told func(reason string)

	mu     sync.Mutex
	second int64
	lines  int
	silent int
}

// refused counts and logs a refusal; the details may be texts of the sender.
func (l *refusalLog) refused(reason string, details ...any) {
	l.told(reason)
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now().Unix(); now != l.second {
		l.second, l.lines = now, 0
	}
	if l.lines++; l.lines > logRate {
		l.silent++
		return
	}
	for i, d := range details {
		if text, ok := d.(string); ok && len(text) > logText {
			details[i] = text[:logText] + "…"
		}
	}
	details = append([]any{"reason", reason}, details...)
	if l.silent > 0 {
		details = append(details, "not_logged", l.silent)
		l.silent = 0
	}
	l.log.Info("mail refused", details...)
}

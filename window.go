package hookglass

import (
	"strconv"
	"time"
)

// Window is the period that figures cover, divided into steps that begin at whole multiples of their length in UTC.
// The last step is still running.
type Window struct {
	Length, Step string // as they are spelled
	From, To     time.Time
	Each         time.Duration
}

// WindowFigures are what is known of an endpoint in a window.
type WindowFigures struct {
	Window
	Endpoint EndpointID
	Steps    map[time.Time]*Figures // by the beginning of the step; none where nothing was
	Actions  ActionTotals
}

// Bounds of a window. Figures by hour are kept longer than any usual retention, figures by minute for two days.
const (
	maxWindow       = 90 * 24 * time.Hour
	maxMinuteWindow = 24 * time.Hour
	maxSteps        = 2_000
)

// ParseWindow parses a window that ends now, and its step; each is a number and m, h or d. Without a step it chooses
// one that gives about 24 steps. It answers validation_failed.
func ParseWindow(window, step string, now time.Time) (Window, error) {
	length, each, err := span(window, step)
	if err != nil {
		return Window{}, err
	}
	if step == "" {
		step = spelled(each)
	}
	to := now.UTC().Truncate(each).Add(each)
	return Window{Length: window, Step: step, From: to.Add(-length), To: to, Each: each}, nil
}

// span reads a window and its step.
func span(window, step string) (w, each time.Duration, err error) {
	w, err = lengthOf("window", window)
	if err != nil {
		return 0, 0, err
	}
	switch {
	case w > maxWindow:
		return 0, 0, Invalid("window", "may be 90d at most")
	case w > maxMinuteWindow && w%time.Hour != 0:
		return 0, 0, Invalid("window", "must be whole hours beyond 24h")
	}
	if step == "" {
		return w, usualStep(w), nil
	}
	if each, err = lengthOf("step", step); err != nil {
		return 0, 0, err
	}
	switch {
	case each > w:
		return 0, 0, Invalid("step", "may not be longer than the window")
	case w%each != 0:
		return 0, 0, Invalid("step", "must divide the window")
	case w/each > maxSteps:
		return 0, 0, Invalid("step", "is too short: a window has %d steps at most", maxSteps)
	case each%time.Hour != 0 && time.Hour%each != 0:
		return 0, 0, Invalid("step", "must be whole hours, or divide the hour")
	case each%time.Hour != 0 && w > maxMinuteWindow:
		return 0, 0, Invalid("step", "must be whole hours for a window of more than 24h")
	}
	return w, each, nil
}

// usualStep returns the shortest usual step that divides a window into 30 steps or fewer.
func usualStep(w time.Duration) time.Duration {
	for _, minutes := range []time.Duration{1, 2, 3, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440} {
		each := minutes * time.Minute
		if w%each == 0 && w/each <= 30 && (each%time.Hour == 0 || w <= maxMinuteWindow) {
			return each
		}
	}
	switch {
	case w%(24*time.Hour) == 0:
		return 24 * time.Hour
	case w > maxMinuteWindow && w/time.Hour <= maxSteps:
		return time.Hour
	case w > maxMinuteWindow:
		return w
	}
	return time.Minute
}

// lengthOf parses a whole number of minutes, hours or days.
func lengthOf(field, text string) (time.Duration, error) {
	fault := Invalid(field, "must be a number and m, h or d, such as 30m, 24h or 7d")
	if len(text) < 2 || len(text) > 6 {
		return 0, fault
	}
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 32)
	if err != nil || n == 0 || text[0] == '+' {
		return 0, fault
	}
	switch text[len(text)-1] {
	case 'm':
		return time.Duration(n) * time.Minute, nil
	case 'h':
		return time.Duration(n) * time.Hour, nil
	case 'd':
		return time.Duration(n) * 24 * time.Hour, nil
	}
	return 0, fault
}

func spelled(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	case d%time.Hour == 0:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	}
	return strconv.Itoa(int(d/time.Minute)) + "m"
}

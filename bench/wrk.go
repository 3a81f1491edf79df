package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// The generators. wrk takes less of the processor that it shares with what is measured, so it is the stricter one.
const (
	loadAuto = "auto"
	loadOwn  = "own"
	loadWrk  = "wrk"
)

// chooseLoad settles which generator is used.
func (p *plan) chooseLoad() error {
	switch p.load {
	case loadOwn:
		return nil
	case loadAuto, loadWrk:
		_, err := exec.LookPath("wrk")
		if err == nil {
			p.load = loadWrk
			return nil
		}
		if p.load == loadWrk {
			return err
		}
		p.load = loadOwn
		return nil
	default:
		return fmt.Errorf("-load: %q is none of %s, %s, %s", p.load, loadAuto, loadOwn, loadWrk)
	}
}

// capture runs one load as fast as there are answers with the generator that was chosen.
func (p *plan) capture(ctx context.Context, dir, address string, conns int) (outcome, error) {
	if p.load == loadOwn {
		return load{conns: conns, warm: p.warm, time: p.time}.send(ctx, address)
	}
	var total outcome
	if p.warm > 0 {
		o, err := load{conns: conns, time: p.warm}.send(ctx, address)
		if err != nil {
			return outcome{}, err
		}
		total = o
	}
	o, err := wrk(ctx, dir, address, conns, p.time)
	if err != nil {
		return outcome{}, err
	}
	o.acked += total.acked
	o.failed += total.failed
	o.unsure += total.unsure
	return o, nil
}

// wrk runs wrk. It stops in the middle of its requests, one for each connection, and those count as unsure.
func wrk(ctx context.Context, dir, address string, conns int, length time.Duration) (outcome, error) {
	u, err := url.Parse(address)
	if err != nil {
		return outcome{}, err
	}
	_, body, _ := strings.Cut(string(push(u).bytes), "\r\n\r\n")
	var script strings.Builder
	fmt.Fprintf(&script, "wrk.method = \"POST\"\nwrk.body = [==[%s]==]\n", body)
	for _, h := range header {
		fmt.Fprintf(&script, "wrk.headers[%q] = %q\n", h[0], h[1])
	}
	scripts, err := os.MkdirTemp(dir, "push") // of its own: another may begin at the same time
	if err != nil {
		return outcome{}, err
	}
	defer func() { _ = os.RemoveAll(scripts) }() // goes with the service's directory at the latest
	file := filepath.Join(scripts, "push.lua")
	if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
		return outcome{}, err
	}
	seconds := max(1, int(length.Round(time.Second)/time.Second))
	threads := min(runtime.NumCPU(), conns)
	out, err := exec.CommandContext(ctx, "wrk", "-t", strconv.Itoa(threads), "-c", strconv.Itoa(conns),
		"-d", fmt.Sprintf("%ds", seconds), "--timeout", "60s", "--latency", "-s", file, address).CombinedOutput()
	if err != nil {
		return outcome{}, fmt.Errorf("wrk: %w\n%s", err, out)
	}
	o, err := parseWrk(string(out))
	o.unsure += int64(conns)
	return o, err
}

var (
	wrkRate   = regexp.MustCompile(`(?m)^Requests/sec:\s+([0-9.]+)`)
	wrkTotal  = regexp.MustCompile(`(?m)^\s*(\d+) requests in`)
	wrkP50    = regexp.MustCompile(`(?m)^\s*50%\s+([0-9.]+)(us|ms|s|m)`)
	wrkP99    = regexp.MustCompile(`(?m)^\s*99%\s+([0-9.]+)(us|ms|s|m)`)
	wrkStatus = regexp.MustCompile(`(?m)^\s*Non-2xx or 3xx responses: (\d+)`)
	wrkErrors = regexp.MustCompile(`(?m)^\s*Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
)

// parseWrk reads wrk's report.
func parseWrk(text string) (outcome, error) {
	number := func(re *regexp.Regexp) float64 {
		m := re.FindStringSubmatch(text)
		if m == nil {
			return -1
		}
		f, _ := strconv.ParseFloat(m[1], 64) // the pattern admits digits and dots
		return f
	}
	latency := func(re *regexp.Regexp) time.Duration {
		m := re.FindStringSubmatch(text)
		if m == nil {
			return -1
		}
		d, _ := time.ParseDuration(m[1] + m[2]) // the pattern admits durations
		return d
	}
	o := outcome{perSecond: number(wrkRate), p50: latency(wrkP50), p99: latency(wrkP99)}
	total := number(wrkTotal)
	if o.perSecond < 0 || total < 0 || o.p50 < 0 || o.p99 < 0 {
		return outcome{}, fmt.Errorf("wrk said what is not understood:\n%s", text)
	}
	o.acked = int64(total)
	if m := wrkStatus.FindStringSubmatch(text); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		o.acked -= n
		o.failed += n
		o.firstFail = strings.TrimSpace(m[0])
	}
	if m := wrkErrors.FindStringSubmatch(text); m != nil {
		for _, field := range m[1:] {
			n, _ := strconv.ParseInt(field, 10, 64)
			o.failed += n
			o.unsure += n
		}
		o.firstFail = strings.TrimSpace(m[0])
	}
	return o, nil
}

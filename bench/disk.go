package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// disk watches the one below the databases. Disks of rented machines let a burst through and are slow for a while then:
// what comes after the burst would be compared with what came before it.
type disk struct {
	patience time.Duration // how long a load waits for it at most
	fastest  time.Duration // median of a probe
	slowest  time.Duration // of those that a load was begun after
	waited   time.Duration // in all
}

const (
	probeSyncs = 40
	probeAgain = time.Second
	// calmDisk is how many times the fastest probe another may take.
	calmDisk = 3
)

// await waits until the disk is about as fast as it was at its best, or patience ends.
func (d *disk) await(ctx context.Context, dir string) error {
	for began := time.Now(); ; {
		took, err := probe(dir)
		if err != nil {
			return err
		}
		if d.fastest == 0 || took < d.fastest {
			d.fastest = took
		}
		spent := time.Since(began)
		if took <= calmDisk*d.fastest || spent >= d.patience {
			d.slowest = max(d.slowest, took)
			d.waited += spent
			return nil
		}
		select {
		case <-time.After(probeAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// probe is the median time of a sync of 8 KB.
func probe(dir string) (median time.Duration, err error) {
	name := filepath.Join(dir, "probe")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(name)) }()
	page := make([]byte, 8<<10)
	var took []time.Duration
	for range probeSyncs {
		if _, err := f.WriteAt(page, 0); err != nil {
			return 0, err
		}
		began := time.Now()
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// String says how the disk did.
func (d *disk) String() string {
	if d.fastest == 0 {
		return ""
	}
	return fmt.Sprintf("; before the loads a sync of 8 KB took %s to %s", duration(d.fastest), duration(d.slowest))
}

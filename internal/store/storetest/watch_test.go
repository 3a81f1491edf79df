package storetest_test

import (
	"testing"
	"time"

	"hookglass/internal/store/storetest"
)

func TestAWatchGoesOnAndNotTooFast(t *testing.T) {
	began, elapsed := time.Now(), storetest.Watch(t)
	for last := elapsed(); elapsed() < 100*time.Millisecond; {
		if now := elapsed(); now < last {
			t.Fatalf("it went back from %v to %v", last, now)
		} else {
			last = now
		}
		<-time.After(time.Millisecond)
	}
	if shown, took := elapsed(), time.Since(began); shown > took+20*time.Millisecond {
		t.Errorf("it shows %v after %v", shown, took)
	}
}

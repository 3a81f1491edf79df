package store

import "time"

// Overdue is the owner of rows of which the oldest is past its retention.
type Overdue struct {
	Num    int64
	Cutoff time.Time // rows from before it expire
	at     int64     // when that was found; rows from later are from when the clock was wrong, and are skipped
}

// cutoffColumn is the time before which rows of account c expire at $1; see [retained].
const cutoffColumn = "cast($1 AS bigint) - " + retained + " AS cutoff"

// overdue lists the owners d, each a num and its cutoff, whose oldest row is from before the cutoff. This is looked up
// where no capture waits: there may be very many owners, and most have nothing that is due.
func (v *View) overdue(owners, oldest string, at time.Time, retention time.Duration) ([]Overdue, error) {
	return queryAll(v, func(scan func(...any) error) (d Overdue, err error) {
		var cutoff int64
		err = scan(&d.Num, &cutoff)
		d.Cutoff, d.at = time.UnixMicro(cutoff), at.UnixMicro()
		return d, err
	}, "SELECT num, cutoff FROM ("+owners+") AS d WHERE ("+oldest+" LIMIT 1) < cutoff ORDER BY num",
		at.UnixMicro(), retention.Microseconds())
}

// purgeRows bounds the rows that one transaction purges.
const purgeRows = 500

// purge deletes some of what is due, and returns the owners that may have more. remove deletes rows of one owner, up to
// most.
func purge(due []Overdue, remove func(d Overdue, most int64) (n int64, err error)) (left []Overdue, err error) {
	for most := int64(purgeRows); len(due) > 0; due = due[1:] {
		n, err := remove(due[0], most)
		if most -= n; err != nil || most == 0 {
			return due, err
		}
	}
	return nil, nil
}

// AttemptsDue lists the endpoints with attempt counters that are older than the retention of their account, or the
// given one of the installation if the account has none.
func (v *View) AttemptsDue(at time.Time, retention time.Duration) ([]Overdue, error) {
	return v.overdue("SELECT e.num, "+cutoffColumn+" FROM endpoints e LEFT JOIN accounts c ON c.id = e.account_id",
		"SELECT x.at FROM script_positions x WHERE "+
			v.dialect.rowsOf("x.endpoint", "x.at", "d.num", "0", "cast($1 AS bigint)")+" ORDER BY x.endpoint, x.at",
		at, retention)
}

// PurgeAttempts deletes some of the attempt counters that are due, and returns the endpoints that may have more.
func (tx *Tx) PurgeAttempts(due []Overdue) (left []Overdue, err error) {
	oldest := tx.dialect.pickedRows("FROM script_positions x WHERE " +
		tx.dialect.rowsOf("x.endpoint", "x.at", "$1", "0", "$2") + " ORDER BY x.endpoint, x.at LIMIT $3")
	return purge(due, func(d Overdue, most int64) (int64, error) {
		return tx.exec("DELETE FROM script_positions WHERE "+oldest, d.Num, d.Cutoff.UnixMicro(), most)
	})
}

// ActivityDue lists the accounts, and 0 for those without one, whose oldest line of the feed is past their retention,
// or past the given one of the installation if the account has none. It examines one line of each and skips those with
// a future time: lines from when the clock was wrong must not hold up older ones.
func (v *View) ActivityDue(at time.Time, retention time.Duration) ([]Overdue, error) {
	return v.overdue("SELECT c.id AS num, "+cutoffColumn+" FROM accounts c"+
		" UNION ALL SELECT 0, cast($1 AS bigint) - cast($2 AS bigint)",
		"SELECT occurred_at FROM activities WHERE "+v.dialect.linesOf("d.num", "0")+
			" AND occurred_at <= cast($1 AS bigint) ORDER BY account_id, id",
		at, retention)
}

// PurgeActivity deletes some of the lines of the feed that are due, and returns the accounts that may have more. Lines
// of captures go with their events.
func (tx *Tx) PurgeActivity(due []Overdue) (left []Overdue, err error) {
	oldest := tx.dialect.picked("id", "SELECT id FROM activities WHERE "+tx.dialect.linesOf("$1", "0")+
		" AND occurred_at <= $2 ORDER BY account_id, id LIMIT $4")
	return purge(due, func(d Overdue, most int64) (int64, error) {
		return tx.exec("DELETE FROM activities WHERE "+oldest+" AND occurred_at < $3",
			d.Num, d.at, d.Cutoff.UnixMicro(), most)
	})
}

// IncidentsDue lists the alerts whose oldest resolved incident is past the retention of their account, or past the
// given one of the installation if the account has none. It examines one incident of each alert and skips those with a
// future time, as ActivityDue does.
func (v *View) IncidentsDue(at time.Time, retention time.Duration) ([]Overdue, error) {
	return v.overdue("SELECT a.num, "+cutoffColumn+
		" FROM alerts a JOIN endpoints e ON e.num = a.endpoint LEFT JOIN accounts c ON c.id = e.account_id",
		"SELECT x.resolved_at FROM alert_incidents x WHERE "+
			v.dialect.rowsOf("x.alert", "x.num", "d.num", "0", newestNum)+
			" AND x.resolved_at <= cast($1 AS bigint) ORDER BY x.alert, x.num",
		at, retention)
}

// PurgeIncidents deletes some of the incidents that are due, so that they leave with their lines in the feed, and
// returns the alerts that may have more.
func (tx *Tx) PurgeIncidents(due []Overdue) (left []Overdue, err error) {
	oldest := tx.dialect.picked("num", "SELECT num FROM alert_incidents WHERE "+
		tx.dialect.rowsOf("alert", "num", "$1", "0", newestNum)+" AND resolved_at <= $2 ORDER BY alert, num LIMIT $4")
	return purge(due, func(d Overdue, most int64) (int64, error) {
		return tx.exec("DELETE FROM alert_incidents WHERE "+oldest+" AND resolved_at < $3",
			d.Num, d.at, d.Cutoff.UnixMicro(), most)
	})
}

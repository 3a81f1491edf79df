package store

import "hookglass"

// NextAttempt counts an attempt of a delivery at an endpoint with a response script and returns its number, from 1 on.
// If the script has changed since the previous attempt, counting starts over. It answers not_found.
func (tx *Tx) NextAttempt(endpointNum int64, key hookglass.DeliveryKey, script string) (n int64, err error) {
	return tx.countAttempt(endpointNum, key, script, 1)
}

// countAttempt adds to the number of the latest attempt, which is 0 for another script than before, and returns it.
func (tx *Tx) countAttempt(endpointNum int64, key hookglass.DeliveryKey, script string, by int) (n int64, err error) {
	err = tx.queryRow("endpoint", `INSERT INTO script_positions (endpoint, identity, script, position, at)
		SELECT endpoint, $2, $3, cast($5 AS bigint), $4 FROM endpoint_stats WHERE endpoint = $1
		ON CONFLICT (endpoint, identity) DO UPDATE SET at = excluded.at, script = excluded.script,
			position = CASE WHEN script_positions.script = excluded.script THEN script_positions.position ELSE 0 END + cast($5 AS bigint)
		RETURNING position`, []any{endpointNum, key[:], script, tx.Now.UnixMicro(), by}, &n)
	return n, err
}

// NextAttemptOf is NextAttempt for a delivery of an event that has an id too, because some senders give each attempt a
// delivery id of its own. The attempt comes behind the latest of the event, in whichever delivery that was, if open
// says of that one's number that the sender was to try again.
func (tx *Tx) NextAttemptOf(endpointNum int64, delivery, event hookglass.DeliveryKey, script string, open func(n int64) bool) (n int64, err error) {
	// It is written in order to hold the row: attempts that come at the same time have each a place of their own.
	latest, err := tx.countAttempt(endpointNum, event, script, 0)
	if err != nil {
		return 0, err
	}
	if n, err = tx.NextAttempt(endpointNum, delivery, script); err != nil {
		return 0, err
	}
	if latest >= n && open(latest) {
		n = latest + 1
		if err := tx.setAttempt(endpointNum, delivery, n); err != nil {
			return 0, err
		}
	}
	return n, tx.setAttempt(endpointNum, event, n)
}

// setAttempt sets the number of the latest attempt, which has been counted.
func (tx *Tx) setAttempt(endpointNum int64, key hookglass.DeliveryKey, n int64) error {
	_, err := tx.exec(`UPDATE script_positions SET position = $3 WHERE endpoint = $1 AND identity = $2`, endpointNum, key[:], n)
	return err
}

// ForgetAttempts makes the next attempt of a delivery the first.
func (tx *Tx) ForgetAttempts(endpointNum int64, key hookglass.DeliveryKey) error {
	_, err := tx.exec(`DELETE FROM script_positions WHERE endpoint = $1 AND identity = $2`, endpointNum, key[:])
	return err
}

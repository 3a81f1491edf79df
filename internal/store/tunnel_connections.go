package store

import (
	"encoding/json"
	"time"

	"hookglass"
)

// maxConnections bounds a list of subscriptions, which nobody could read if it were longer.
const maxConnections = 200

// TunnelConnections lists the connections to an endpoint, oldest first. It answers not_found.
func (v *View) TunnelConnections(ref string) ([]hookglass.TunnelConnection, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return nil, err
	}
	return queryAll(v, func(scan func(...any) error) (c hookglass.TunnelConnection, err error) {
		var client []byte
		var subscribed, reports, replays int64
		if err = scan(&c.Session.ID, &client, &subscribed, &c.TargetURL, &c.Hostname, &reports, &replays); err != nil {
			return c, err
		}
		c.Since, c.Reports, c.Replays = time.UnixMicro(subscribed).UTC(), reports != 0, replays != 0
		err = json.Unmarshal(client, &c.Session.Client)
		return c, err
	}, `SELECT s.id, s.client, t.subscribed_at, t.target_url, t.hostname, t.reports, t.replays
		FROM tunnel_subscriptions t JOIN tunnel_sessions s ON s.num = t.session + 0 WHERE t.endpoint = $1 ORDER BY t.num + 0 LIMIT $2`, e.Num, maxConnections)
}

// GapHistory lists the outages of an endpoint in all states, newest first. It answers not_found.
func (v *View) GapHistory(ref string, limit int) ([]hookglass.Gap, error) {
	e, err := v.Endpoint(ref)
	if err != nil {
		return nil, err
	}
	a := &args{}
	where := " WHERE " + v.dialect.newestOf(a, "g.endpoint", e.Num, "g.num", 0, limit)
	return v.gaps(where, a.all()...)
}

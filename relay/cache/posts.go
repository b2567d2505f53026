package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// MergePosts merges posts of frames with earlier posts of the same frames. Posts are kept for at
// least ttl and at most twice ttl.
func (c *IoT) MergePosts(ctx context.Context, acct relay.AccountID, posts []iot.FramePost, ttl time.Duration) ([]iot.MergedFrame, error) {
	return inChunks(posts, func(chunk []iot.FramePost) ([]iot.MergedFrame, error) { return c.merge(ctx, acct, chunk, ttl) })
}

func (c *IoT) merge(ctx context.Context, acct relay.AccountID, posts []iot.FramePost, ttl time.Duration) ([]iot.MergedFrame, error) {
	now := c.db.now()
	current := spanAt(now, ttl)
	type deviceFields struct{ previous, current *redis.MapStringStringCmd } // by span
	devices := make(map[string]*deviceFields)
	err := c.db.pipeline(ctx, "posts of frames", func(p redis.Pipeliner) {
		for i := range posts {
			post := &posts[i]
			key, frame := keyPosts(acct, post.Device, current), fieldPrefix(post.Dedup)
			devices[post.Device] = &deviceFields{}
			if !post.Time.IsZero() {
				p.HSetNX(ctx, key, frame+"at", post.Time.UnixNano())
			}
			if position := post.Position; position != nil {
				p.HSet(ctx, key, frame+"position", formatFloat(&position.Latitude)+"|"+formatFloat(&position.Longitude))
			}
			for _, g := range post.Gateways {
				p.HSet(ctx, key, frame+"g:"+formatFloat(g.SNR)+"|"+formatFloat(g.RSSI)+"|"+g.ID, "")
			}
		}
		for device, fields := range devices {
			key := keyPosts(acct, device, current)
			p.PExpire(ctx, key, current.expiry().Sub(now))
			fields.previous, fields.current = p.HGetAll(ctx, keyPosts(acct, device, current.previous())), p.HGetAll(ctx, key)
		}
	})
	if err != nil {
		return nil, err
	}
	mergedFrames := make([]iot.MergedFrame, len(posts))
	for i, post := range posts {
		fields := devices[post.Device]
		if mergedFrames[i], err = mergedFrom(fieldPrefix(post.Dedup), fields.previous.Val(), fields.current.Val()); err != nil {
			return nil, fmt.Errorf("posts of a frame of %s: %w", post.Device, err)
		}
	}
	return mergedFrames, nil
}

func fieldPrefix(dedup string) string { return strconv.Itoa(len(dedup)) + ":" + dedup + ":" }

func formatFloat(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

// mergedFrom merges the posts of a frame from the fields of two spans, the earlier span first. It
// keeps the best reception of each gateway, by SNR, then by RSSI.
func mergedFrom(frame string, spans ...map[string]string) (merged iot.MergedFrame, err error) {
	for _, fields := range spans {
		for field, text := range fields {
			if name, ok := strings.CutPrefix(field, frame); ok {
				if err := addField(&merged, name, text); err != nil {
					return merged, fmt.Errorf("%q %q: %w", name, text, err)
				}
			}
		}
	}
	slices.SortFunc(merged.Gateways, func(a, b decoders.Gateway) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(level(b.SNR), level(a.SNR)), cmp.Compare(level(b.RSSI), level(a.RSSI)))
	})
	merged.Gateways = slices.CompactFunc(merged.Gateways, func(a, b decoders.Gateway) bool { return a.ID == b.ID })
	return merged, nil
}

func addField(merged *iot.MergedFrame, name, text string) error {
	reception, isGateway := strings.CutPrefix(name, "g:")
	switch {
	case isGateway:
		signal := strings.SplitN(reception, "|", 3)
		if len(signal) != 3 {
			return errors.New("must have SNR, RSSI and gateway")
		}
		snr, err1 := parseFloat(signal[0])
		rssi, err2 := parseFloat(signal[1])
		merged.Gateways = append(merged.Gateways, decoders.Gateway{ID: signal[2], SNR: snr, RSSI: rssi})
		return errors.Join(err1, err2)
	case name == "at" && merged.Time.IsZero():
		ns, err := strconv.ParseInt(text, 10, 64)
		merged.Time = time.Unix(0, ns).UTC()
		return err
	case name == "position":
		a, b, _ := strings.Cut(text, "|")
		latitude, err1 := strconv.ParseFloat(a, 64)
		longitude, err2 := strconv.ParseFloat(b, 64)
		merged.Position = &decoders.Position{Latitude: latitude, Longitude: longitude}
		return errors.Join(err1, err2)
	}
	return nil
}

func parseFloat(text string) (*float64, error) {
	if text == "" {
		return nil, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	return &v, err
}

// level returns a signal's level. A missing level is below all others.
func level(v *float64) float64 {
	if v == nil {
		return math.Inf(-1)
	}
	return *v
}

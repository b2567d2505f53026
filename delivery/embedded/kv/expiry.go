package kv

import "container/heap"

// deadlines knows when each key that expires does so, in milliseconds since
// 1970. miniredis only keeps how long a key had to live when that was last said.
type deadlines struct {
	at    map[string]int64
	queue deadlineHeap
}

type deadline struct {
	at  int64
	key string
}

type deadlineHeap []deadline

func (h deadlineHeap) Len() int           { return len(h) }
func (h deadlineHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h deadlineHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *deadlineHeap) Push(x any)        { *h = append(*h, x.(deadline)) }
func (h *deadlineHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func newDeadlines() *deadlines { return &deadlines{at: map[string]int64{}} }

// set says whether the deadline changed.
func (d *deadlines) set(key string, at int64) bool {
	if old, ok := d.at[key]; ok && old == at {
		return false
	}
	d.at[key] = at
	heap.Push(&d.queue, deadline{at, key})
	d.sweep()
	return true
}

func (d *deadlines) drop(key string) bool {
	_, ok := d.at[key]
	delete(d.at, key)
	return ok
}

func (d *deadlines) reset() {
	clear(d.at)
	d.queue = nil
}

// due returns a key whose deadline has come. It stays due until it is dropped.
func (d *deadlines) due(now int64) (string, bool) {
	for len(d.queue) > 0 {
		first := d.queue[0]
		if at, ok := d.at[first.key]; ok && at == first.at {
			return first.key, first.at <= now
		}
		heap.Pop(&d.queue)
	}
	return "", false
}

// sweep rebuilds the queue when most of it is deadlines that no longer hold.
func (d *deadlines) sweep() {
	if len(d.queue) <= 2*len(d.at)+1000 {
		return
	}
	d.queue = d.queue[:0]
	for key, at := range d.at {
		d.queue = append(d.queue, deadline{at, key})
	}
	heap.Init(&d.queue)
}

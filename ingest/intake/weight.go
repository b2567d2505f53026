package intake

import (
	"bytes"

	"github.com/penstock/penstock/ingest/journal"
)

// The bounds of the memory that entries take while they are processed. An entry beyond
// a bound is processed alone.
const (
	maxBatchWeight = 12 << 20
	maxWeight      = 24 << 20 // of all batches of Run that are processed at the same time
)

// weight estimates the memory, in bytes, of an entry that is being processed. A decoded
// value takes many times its text: the object {"a":1} takes about 350 bytes.
func weight(payload []byte) int {
	const object, value = 350, 64
	return len(payload) + object*bytes.Count(payload, []byte("{")) + value*bytes.Count(payload, []byte(","))
}

// nextBatch returns how many of records, which are not empty, make up the next batch,
// and their weight.
func nextBatch(records []journal.Record) (count, sum int) {
	for _, r := range records {
		w := weight(r.Payload)
		if count > 0 && sum+w > maxBatchWeight {
			break
		}
		count, sum = count+1, sum+w
	}
	return count, sum
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// fleetDevice is a device of the fleet and its one sensor.
type fleetDevice struct{ id, identifier, sensor string }

// fleet is an account with many devices and a month of readings. As in fleets
// that there are, a few devices measure and the many report now and then: of ten
// devices the first has nine tenths of the readings.
type fleet struct {
	daemon   *daemon
	members  []fleetDevice
	first    time.Time
	measures int    // readings of a device that measures
	reports  int    // readings of any other
	holds    string // an answer with readings has one of these characters
}

// oneIn is how many devices there are to one that measures.
const oneIn = 10

// readings is how many readings the n-th device has.
func (f *fleet) readings(n int) int {
	if n%oneIn == 0 {
		return f.measures
	}
	return f.reports
}

// measuring is a device that measures, any of them.
func (f *fleet) measuring(n int) fleetDevice { return f.members[n/oneIn*oneIn] }

// month is how far the fleet's readings go back.
const month = 31 * 24 * time.Hour

// readings measures what is read of an account with many devices and readings,
// beside what a bare handler and InfluxDB itself need for the same.
func readings(ctx context.Context, p *peers, s settings, r *report) error {
	if s.embedded || s.readings == 0 {
		return nil
	}
	d, err := p.daemon(ctx, s)
	if err != nil {
		return err
	}
	defer d.stop()
	f := &fleet{
		daemon: d, holds: ".|", first: time.Now().UTC().Truncate(time.Hour).Add(-month),
		measures: s.readings / s.fleet * (oneIn - 1), reports: s.readings / s.fleet / (oneIn - 1),
	}
	for _, step := range []func(context.Context, settings) error{f.createDevices, f.fill, f.settle} {
		if err := step(ctx, s); err != nil {
			return err
		}
	}
	return f.measure(ctx, p, s, r)
}

// createDevices sends a frame of every device, which creates it, and reads the ids.
func (f *fleet) createDevices(ctx context.Context, s settings) error {
	s.devices = s.fleet
	s.decoder = "single"
	if err := newLoad(f.daemon.addr, f.daemon.token, s).send(ctx, int64(s.fleet)); err != nil {
		return err
	}
	if err := f.daemon.stored(ctx, int64(s.fleet)); err != nil {
		return err
	}
	var list struct {
		Data []struct{ ID, Identifier string }
	}
	if err := getJSON(ctx, http.DefaultClient, "http://"+f.daemon.addr+"/iot/devices", f.daemon.token, &list); err != nil {
		return err
	}
	f.members = make([]fleetDevice, len(list.Data))
	return spread(s, span{end: int64(len(f.members))}, func(n int64) error {
		var sensors struct{ Data []struct{ ID string } }
		d := list.Data[n]
		err := getJSON(ctx, http.DefaultClient, "http://"+f.daemon.addr+"/iot/devices/"+d.ID+"/sensors", f.daemon.token, &sensors)
		if err == nil && len(sensors.Data) != 1 {
			err = fmt.Errorf("device %s has %d sensors", d.ID, len(sensors.Data))
		}
		if err == nil {
			f.members[n] = fleetDevice{d.ID, d.Identifier, sensors.Data[0].ID}
		}
		return err
	})
}

// devicesAtOnce is how many devices' readings go into one write.
const devicesAtOnce = 10

// fill writes the readings straight into InfluxDB, as the gateway's store would
// write them.
func (f *fleet) fill(ctx context.Context, _ settings) error {
	parts := make(chan int)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			var body []byte
			for at := range parts {
				if errs[i] == nil {
					body = f.lines(body[:0], at)
					errs[i] = f.write(ctx, body)
				}
			}
		})
	}
	for at := 0; at < len(f.members); at += devicesAtOnce {
		parts <- at
	}
	close(parts)
	wg.Wait()
	return errors.Join(errs...)
}

// lines appends every reading of the devices from the n-th on, a temperature.
func (f *fleet) lines(b []byte, from int) []byte {
	for n := from; n < min(from+devicesAtOnce, len(f.members)); n++ {
		m, each := f.members[n], f.readings(n)
		head := "temperature,account=1,device_id=" + m.id + ",identifier=" + m.identifier + ",key=temperature_1,sensor_id=" + m.sensor + " value="
		for i := range each {
			b = append(b, head...)
			b = strconv.AppendFloat(b, 15+float64((i*7+n*3)%130)/10, 'g', -1, 64)
			b = append(b, ' ')
			b = strconv.AppendInt(b, f.first.Add(time.Duration(i)*(month/time.Duration(each))).Unix(), 10)
			b = append(b, '\n')
		}
	}
	return b
}

func (f *fleet) write(ctx context.Context, lines []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.daemon.influx()+"/write?db=bench&precision=s", bytes.NewReader(lines))
	if err != nil {
		return err
	}
	return answered(http.DefaultClient, req, http.StatusNoContent, nil)
}

// settle checks that everything is there and waits until InfluxDB has put its
// files in order, a minute at most.
func (f *fleet) settle(ctx context.Context, _ settings) error {
	n, err := f.daemon.countPoints(ctx)
	if err != nil {
		return err
	}
	want := int64(len(f.members)) // of the frames
	for i := range f.members {
		want += int64(f.readings(i))
	}
	if n != want {
		return fmt.Errorf("the fleet has %d readings, want %d", n, want)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for busy := cpuOf(f.daemon.beside.influx); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := cpuOf(f.daemon.beside.influx)
		if now-busy < 100*time.Millisecond {
			return nil
		}
		busy = now
	}
}

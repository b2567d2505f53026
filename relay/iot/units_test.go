package iot_test

import (
	"testing"

	"github.com/penstock/penstock/relay/iot"
)

func TestValuesWithTheSameUnitsStayExact(t *testing.T) {
	const exact = 12345.678901234567
	for name, tc := range map[string]struct {
		sensorType iot.SensorType
		want       float64
	}{
		"without imperial units":    {iot.SensorType{MetricUnits: "V"}, exact},
		"with the same units":       {iot.SensorType{MetricUnits: "V", ImperialUnits: "V"}, exact},
		"with a slope of 1":         {iot.SensorType{MetricUnits: "%", ImperialUnits: "%", ImperialSlope: 1}, exact},
		"with a slope, 12 digits":   {iot.SensorType{MetricUnits: "a", ImperialUnits: "b", ImperialSlope: 2}, 24691.3578025},
		"with an offset, 12 digits": {iot.SensorType{MetricUnits: "a", ImperialUnits: "b", ImperialOffset: 1}, 12346.6789012},
	} {
		if got := tc.sensorType.ToImperial(exact); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

package serve

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
)

// otlpMetrics sends the numbers of the SDK.
type otlpMetrics struct{ *otlp }

var _ sdkmetric.Exporter = otlpMetrics{}

// Temporality implements [sdkmetric.Exporter].
func (otlpMetrics) Temporality(kind sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(kind)
}

// Aggregation implements [sdkmetric.Exporter].
func (otlpMetrics) Aggregation(kind sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(kind)
}

// ForceFlush implements [sdkmetric.Exporter]: Export keeps nothing.
func (otlpMetrics) ForceFlush(context.Context) error { return nil }

// Shutdown implements [sdkmetric.Exporter].
func (s otlpMetrics) Shutdown(ctx context.Context) error { return s.Stop(ctx) }

// Export implements [sdkmetric.Exporter].
func (s otlpMetrics) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	of := &metricspb.ResourceMetrics{
		Resource:  &resourcepb.Resource{Attributes: attributes(data.Resource.Set())},
		SchemaUrl: data.Resource.SchemaURL(),
	}
	for _, scope := range data.ScopeMetrics {
		list := &metricspb.ScopeMetrics{
			Scope:     &commonpb.InstrumentationScope{Name: scope.Scope.Name, Version: scope.Scope.Version},
			SchemaUrl: scope.Scope.SchemaURL,
		}
		for i := range scope.Metrics {
			if m := metricOf(&scope.Metrics[i]); m.Data != nil {
				list.Metrics = append(list.Metrics, m)
			}
		}
		of.ScopeMetrics = append(of.ScopeMetrics, list)
	}
	return s.send(ctx, &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{of}})
}

// metricOf writes a metric of one of the kinds that instruments of ours have; the data of others is
// nil.
func metricOf(m *metricdata.Metrics) *metricspb.Metric {
	to := &metricspb.Metric{Name: m.Name, Description: m.Description, Unit: m.Unit}
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		to.Data = &metricspb.Metric_Sum{Sum: &metricspb.Sum{
			DataPoints: points(data.DataPoints), AggregationTemporality: temporality(data.Temporality), IsMonotonic: data.IsMonotonic,
		}}
	case metricdata.Gauge[int64]:
		to.Data = &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: points(data.DataPoints)}}
	case metricdata.Histogram[float64]:
		to.Data = &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{
			DataPoints: distributions(data.DataPoints), AggregationTemporality: temporality(data.Temporality),
		}}
	}
	return to
}

func points(list []metricdata.DataPoint[int64]) (out []*metricspb.NumberDataPoint) {
	for _, p := range list {
		out = append(out, &metricspb.NumberDataPoint{
			Attributes: attributes(&p.Attributes), StartTimeUnixNano: nanoseconds(p.StartTime), TimeUnixNano: nanoseconds(p.Time),
			Value: &metricspb.NumberDataPoint_AsInt{AsInt: p.Value},
		})
	}
	return out
}

func distributions(list []metricdata.HistogramDataPoint[float64]) (out []*metricspb.HistogramDataPoint) {
	for _, p := range list {
		to := &metricspb.HistogramDataPoint{
			Attributes: attributes(&p.Attributes), StartTimeUnixNano: nanoseconds(p.StartTime), TimeUnixNano: nanoseconds(p.Time),
			Count: p.Count, Sum: &p.Sum, BucketCounts: p.BucketCounts, ExplicitBounds: p.Bounds,
		}
		if v, ok := p.Min.Value(); ok {
			to.Min = &v
		}
		if v, ok := p.Max.Value(); ok {
			to.Max = &v
		}
		out = append(out, to)
	}
	return out
}

func temporality(t metricdata.Temporality) metricspb.AggregationTemporality {
	if t == metricdata.DeltaTemporality {
		return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	}
	return metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
}

func nanoseconds(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) }

func attributes(set *attribute.Set) (out []*commonpb.KeyValue) {
	for it := set.Iter(); it.Next(); {
		kv := it.Attribute()
		v := &commonpb.AnyValue{}
		switch kv.Value.Type() {
		case attribute.BOOL:
			v.Value = &commonpb.AnyValue_BoolValue{BoolValue: kv.Value.AsBool()}
		case attribute.INT64:
			v.Value = &commonpb.AnyValue_IntValue{IntValue: kv.Value.AsInt64()}
		case attribute.FLOAT64:
			v.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: kv.Value.AsFloat64()}
		default:
			v.Value = &commonpb.AnyValue_StringValue{StringValue: kv.Value.String()}
		}
		out = append(out, &commonpb.KeyValue{Key: string(kv.Key), Value: v})
	}
	return out
}

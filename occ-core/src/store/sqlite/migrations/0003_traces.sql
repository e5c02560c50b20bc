-- Where the request that asked for the work is in its trace (docs/adr/0013): the W3C headers of these names.
ALTER TABLE work ADD COLUMN traceparent TEXT CHECK (length(traceparent) = 55 AND traceparent NOT GLOB '*[^0-9a-f-]*');
ALTER TABLE work ADD COLUMN tracestate TEXT CHECK (length(tracestate) BETWEEN 1 AND 512);

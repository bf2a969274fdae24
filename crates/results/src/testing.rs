//! A plan and an outcome by hand for tests.

use engine::outcome::{Data, Effort, Ending, LinkRecord, MessageRecord, Notes, Recording};
use engine::{Outcome, outcome};
use model::plan::{Classes, FlowControl, Job, Message, Overflow, Pfc, PortSettings, Qp, SwitchSettings};
use model::record::RecordPlan;
use model::{Bytes, FabricBuilder, HostId, Plan, Probability, QpId, Rate, Time, Wire};

/// Hosts `a` and `b` at switch `s`, 100 Gb/s; one queue pair with `flows` messages of 12,500 B in two groups.
pub fn plan(flows: u32) -> Plan {
    let mut builder = FabricBuilder::new();
    let (a, b) = (builder.host("a"), builder.host("b"));
    let s = builder.switch("s", "leaf");
    for host in [a, b] {
        builder.connect(host, s, Rate::from_gbps(100), Time::from_us(1), Probability::ZERO);
    }
    let message = |i: u32| Message {
        qp: QpId(0),
        bytes: 12_500,
        start: Time::ZERO,
        needs: 0,
        on_received: 0..0,
        on_acked: 0..0,
        job: 0,
        group: (i % 2) as u16,
        operation: u32::MAX,
    };
    Plan {
        seed: 1,
        fabric: builder.build().unwrap(),
        wire: Wire::roce(1500),
        classes: Classes::STRICT,
        own_queues: model::plan::OwnQueues::default(),
        nic_classes: model::plan::NicClasses::default(),
        ports: vec![PortSettings::default(); 4],
        switches: vec![SwitchSettings {
            buffer: Bytes(1_000_000),
            flow_control: FlowControl::Lossless(Pfc {
                alpha: (1, 8),
                resume_offset: Bytes(3072),
                watchdog: None,
            }),
            overflow: Overflow::Drop,
            memory: model::plan::Memory::PLAIN,
        }],
        lose_replies: false,
        receive: Vec::new(),
        lost: Vec::new(),
        noise: model::Noise::default(),
        failures: model::Failures::default(),
        qps: vec![Qp { from: HostId(0), to: HostId(1), messages: 0..flows, path: None }],
        sharing: None,
        messages: (0..flows).map(message).collect(),
        wholes: vec![],
        tasks: vec![],
        slices: vec![],
        operations: vec![],
        triggers: vec![],
        jobs: vec![Job {
            name: "job".into(),
            start: Time::ZERO,
            groups: 2,
            background: false,
            class: 0,
            tokens: 0,
        }],
        traffic_classes: vec!["foreground".into(), "background".into()],
        clock_spread: Time::ZERO,
        stop_after: None,
        digest: None,
        posted: None,
        no_progress: Time::from_ms(10),
        retries: Vec::new(),
        record: RecordPlan::default(),
    }
}

/// Message `i` takes 10 x (i + 1) us, with 20,000 bytes on the wire.
pub fn outcome(flows: u64) -> Outcome {
    let record = |i: u64| MessageRecord {
        start: Time::ZERO,
        received: Time::from_us(10 * i + 9),
        acked: Time::from_us(10 * i + 10),
        last_sent: Time::from_us(10 * i + 8),
        wire_bytes: 20_000,
        retransmitted: i,
        slow: Time::ZERO,
    };
    Outcome {
        ending: Ending::Finished,
        end: Time::from_us(10 * flows),
        tasks: Vec::new(),
        messages: (0..flows).map(record).collect(),
        links: vec![LinkRecord { frames: 10, bytes: 15_000, ..LinkRecord::default() }; 4],
        nics: vec![outcome::NicRecord { sent: 15, accepted: 13, ..outcome::NicRecord::default() }; 2],
        max_buffer: vec![Bytes(3000)],
        data: Data { sent: 30, accepted: 27, retransmitted: 3, spurious: 2, duplicate: 3, ..Data::default() },
        control: outcome::Control::default(),
        out_of_order: vec![0; 2],
        data_hops: 60,
        control_hops: 60,
        counters: vec![("nacks_blocked", 5)],
        failovers: vec![],
        priorities: Vec::new(),
        queues: Vec::new(),
        watermarks: Vec::new(),
        losses: Vec::new(),
        recording: Recording::default(),
        notes: Notes::default(),
        violations: vec![],
        broke_lossless: vec![],
        effort: Effort::default(),
    }
}

/// The keys of an object of the summary, in their order.
pub fn keys(of: &impl serde::Serialize) -> String {
    let json = crate::json::value(of);
    json.as_object().into_iter().flat_map(|entries| entries.keys()).cloned().collect::<Vec<_>>().join(" ")
}

//! The tokens: name, id, type, direction, and what is made of each.
//!
//! One table from which requests are decoded, answers are written, and the compatibility page comes. What a token of a
//! request means is in its row: the header that it stands for and how its value becomes that header's, or that the
//! code of the protocol reads it itself. Ids that are not here are passed over, as clients do with those of answers.

use http::{HeaderName, header};

use super::token::TokenType;
use crate::headers;

/// What becomes of a token.
#[derive(Debug)]
pub enum Meaning {
    /// Its text is the header's.
    Text(HeaderName),
    /// Not 0 is `True`.
    Flag(HeaderName),
    /// Its digits; all ones is -1.
    Number(HeaderName),
    /// Read or written by the code of the protocol itself; says as what.
    Own(&'static str),
    /// Known and without effect here; says why.
    NoEffect(&'static str),
}

use Meaning::{Flag, NoEffect, Number, Own, Text};

#[derive(Debug)]
pub struct Token {
    pub id: u16,
    pub name: &'static str,
    pub kind: TokenType,
    pub meaning: Meaning,
}

macro_rules! tokens {
    ($module:ident, $about:literal, $($id:literal $constant:ident $name:ident $kind:ident $meaning:expr;)*) => {
        #[doc = $about]
        #[allow(dead_code, reason = "a table is whole, whoever uses which part of it")]
        pub mod $module {
            use super::*;
            $(pub const $constant: u16 = $id;)*
            pub const IDS: &[u16] = &[$($id,)*];
            pub static TABLE: [Token; IDS.len()] =
                [$(Token { id: $id, name: stringify!($name), kind: TokenType::$kind, meaning: $meaning },)*];
        }
    };
}

const INFORMATION: &str = "information for the service";

// Each row on a line of its own, however long: this is a table.
tokens! {
    context_request, "Tokens of the first frame of a connection.",
    0x00 PROTOCOL_VERSION ProtocolVersion ULong Own("1");
    0x01 CLIENT_VERSION ClientVersion SmallString Own("`x-ms-version` of all requests that say none of their own");
    0x02 USER_AGENT UserAgent SmallString Own("whether it is the Java SDK, to which two answers must not come at once");
    0x03 CALLER_ID CallerId Byte NoEffect("information");
    0x04 ENABLE_CHANNEL_MULTIPLEXING EnableChannelMultiplexing Byte NoEffect("requests are multiplexed in any case");
    0x05 THIN_PROXY_SIGNATURE ThinProxySignature String NoEffect("this server is no thin proxy");
    0x06 THIN_PROXY_DATE ThinProxyDate SmallString NoEffect("this server is no thin proxy");
    0x07 MUTUAL_TLS_AUTH_MODE MutualTlsAuthMode Byte NoEffect("clients are known by their requests");
}

tokens! {
    context_response, "Tokens of the answer to it.",
    0x00 PROTOCOL_VERSION ProtocolVersion ULong Own("1");
    0x01 CLIENT_VERSION ClientVersion SmallString Own("that of the request");
    0x02 SERVER_AGENT ServerAgent SmallString Own("the name of this server");
    0x03 SERVER_VERSION ServerVersion SmallString Own("its version");
}

tokens! {
    request, "Tokens of requests.",
    0x00 RESOURCE_ID ResourceId Bytes Own("the resource id, where the request has no names");
    0x01 AUTHORIZATION_TOKEN AuthorizationToken String Text(header::AUTHORIZATION);
    0x02 PAYLOAD_PRESENT PayloadPresent Byte Own("whether a payload follows");
    0x03 DATE Date SmallString Text(headers::X_MS_DATE);
    0x04 PAGE_SIZE PageSize ULong Number(headers::MAX_ITEM_COUNT);
    0x05 SESSION_TOKEN SessionToken String Text(headers::SESSION_TOKEN);
    0x06 CONTINUATION_TOKEN ContinuationToken String Text(headers::CONTINUATION);
    0x07 INDEXING_DIRECTIVE IndexingDirective Byte NoEffect("items are indexed by the policy of their container");
    0x08 MATCH Match String Own("`If-None-Match` of reads, `If-Match` of everything else");
    0x09 PRE_TRIGGER_INCLUDE PreTriggerInclude String Text(headers::PRE_TRIGGERS);
    0x0A POST_TRIGGER_INCLUDE PostTriggerInclude String Text(headers::POST_TRIGGERS);
    0x0E PRE_TRIGGER_EXCLUDE PreTriggerExclude String NoEffect("only triggers that are named run");
    0x0F POST_TRIGGER_EXCLUDE PostTriggerExclude String NoEffect("only triggers that are named run");
    0x10 CONSISTENCY_LEVEL ConsistencyLevel Byte Own("`x-ms-consistency-level`; without effect on databases, users and lists, which clients always read as strong");
    0x11 ENTITY_ID EntityId String NoEffect(INFORMATION);
    0x12 RESOURCE_SCHEMA_NAME ResourceSchemaName SmallString NoEffect(INFORMATION);
    0x13 REPLICA_PATH ReplicaPath String Own("the address in use: which range the client believes it asks");
    0x14 RESOURCE_TOKEN_EXPIRY ResourceTokenExpiry ULong Number(headers::EXPIRY_SECONDS);
    0x15 DATABASE_NAME DatabaseName String Own("a name, as it is");
    0x16 COLLECTION_NAME CollectionName String Own("a name, as it is");
    0x17 DOCUMENT_NAME DocumentName String Own("a name, as it is");
    0x18 ATTACHMENT_NAME AttachmentName String Own("a name, as it is");
    0x19 USER_NAME UserName String Own("a name, as it is");
    0x1A PERMISSION_NAME PermissionName String Own("a name, as it is");
    0x1B STORED_PROCEDURE_NAME StoredProcedureName String Own("a name, as it is");
    0x1C USER_DEFINED_FUNCTION_NAME UserDefinedFunctionName String Own("a name, as it is");
    0x1D TRIGGER_NAME TriggerName String Own("a name, as it is");
    0x1E ENABLE_SCAN_IN_QUERY EnableScanInQuery Byte NoEffect("scans are allowed");
    0x1F EMIT_VERBOSE_TRACES_IN_QUERY EmitVerboseTracesInQuery Byte NoEffect(INFORMATION);
    0x20 CONFLICT_NAME ConflictName String Own("a name, as it is");
    0x26 PROFILE_REQUEST ProfileRequest Byte NoEffect(INFORMATION);
    0x27 ENABLE_LOW_PRECISION_ORDER_BY EnableLowPrecisionOrderBy Byte NoEffect("orders are exact");
    0x28 CLIENT_VERSION ClientVersion SmallString Own("`x-ms-version`; else that of the connection");
    0x29 CAN_CHARGE CanCharge Byte NoEffect(INFORMATION);
    0x2A CAN_THROTTLE CanThrottle Byte NoEffect(INFORMATION);
    0x2B PARTITION_KEY PartitionKey String Text(headers::PARTITION_KEY);
    0x2C PARTITION_KEY_RANGE_ID PartitionKeyRangeId String Text(headers::RANGE_ID);
    0x33 SUPPORT_SPATIAL_LEGACY_COORDINATES SupportSpatialLegacyCoordinates Byte NoEffect(INFORMATION);
    0x35 COLLECTION_RID CollectionRid String Own("the container that the client believes in; another one is 410/1000");
    0x36 PARTITION_KEY_RANGE_NAME PartitionKeyRangeName String Own("a name, as it is");
    0x3C USE_POLYGONS_SMALLER_THAN_A_HEMISPHERE UsePolygonsSmallerThanAHemisphere Byte NoEffect(INFORMATION);
    0x3E ENABLE_LOGGING EnableLogging Byte Flag(headers::SCRIPT_LOGGING);
    0x3F A_IM A_IM String Text(headers::A_IM);
    0x40 POPULATE_QUOTA_INFO PopulateQuotaInfo Byte Flag(headers::POPULATE_QUOTA);
    0x42 POPULATE_QUERY_METRICS PopulateQueryMetrics Byte Flag(headers::POPULATE_METRICS);
    0x43 RESPONSE_CONTINUATION_TOKEN_LIMIT_IN_KB ResponseContinuationTokenLimitInKb ULong Number(headers::CONTINUATION_LIMIT);
    0x47 IF_MODIFIED_SINCE IfModifiedSince String Text(header::IF_MODIFIED_SINCE);
    0x49 REMAINING_TIME_IN_MS_ON_CLIENT_REQUEST RemainingTimeInMsOnClientRequest ULong NoEffect(INFORMATION);
    0x4A CLIENT_RETRY_ATTEMPT_COUNT ClientRetryAttemptCount ULong NoEffect(INFORMATION);
    0x4B TARGET_LSN TargetLsn LongLong NoEffect("the one owner of a partition is always there already");
    0x4C TARGET_GLOBAL_COMMITTED_LSN TargetGlobalCommittedLsn LongLong NoEffect("the one owner of a partition is always there already");
    0x4D TRANSPORT_REQUEST_ID TransportRequestID ULong Own("comes back in the answer");
    0x52 IS_READ_ONLY_SCRIPT IsReadOnlyScript Byte NoEffect(INFORMATION);
    0x53 IS_AUTO_SCALE_REQUEST IsAutoScaleRequest Byte NoEffect(INFORMATION);
    0x54 FORCE_QUERY_SCAN ForceQueryScan Byte NoEffect(INFORMATION);
    0x57 EXCLUDE_SYSTEM_PROPERTIES ExcludeSystemProperties Byte NoEffect(INFORMATION);
    0x59 TIME_TO_LIVE_IN_SECONDS TimeToLiveInSeconds Long NoEffect("without effect over HTTP too");
    0x5A EFFECTIVE_PARTITION_KEY EffectivePartitionKey Bytes NoEffect("the server hashes keys itself");
    0x5E ENUMERATION_DIRECTION EnumerationDirection Byte NoEffect(INFORMATION);
    0x5F START_ID StartId Bytes NoEffect("no client of ours sends it to users' containers");
    0x60 END_ID EndId Bytes NoEffect("no client of ours sends it to users' containers");
    0x62 START_EPK StartEpk Bytes Own("`x-ms-start-epk`");
    0x63 END_EPK EndEpk Bytes Own("`x-ms-end-epk`");
    0x64 READ_FEED_KEY_TYPE ReadFeedKeyType Byte Own("`x-ms-read-key-type`");
    0x65 CONTENT_SERIALIZATION_FORMAT ContentSerializationFormat Byte Own("`x-ms-documentdb-content-serialization-format`; 1 is binary JSON, anything else is text");
    0x66 ALLOW_TENTATIVE_WRITES AllowTentativeWrites Byte NoEffect("there is one region");
    0x67 IS_USER_REQUEST IsUserRequest Byte NoEffect(INFORMATION);
    0x71 POPULATE_RESOURCE_COUNT PopulateResourceCount Byte NoEffect(INFORMATION);
    0x73 IS_BATCH_ATOMIC IsBatchAtomic Byte Flag(headers::BATCH_ATOMIC);
    0x74 SHOULD_BATCH_CONTINUE_ON_ERROR ShouldBatchContinueOnError Byte Flag(headers::BATCH_CONTINUE);
    0x75 IS_BATCH_ORDERED IsBatchOrdered Byte NoEffect("operations are done in their order");
    0x79 MAX_POLLING_INTERVAL_MILLISECONDS MaxPollingIntervalMilliseconds ULong NoEffect(INFORMATION);
    0x80 CLIENT_ENCRYPTION_KEY_NAME ClientEncryptionKeyName String Own("a name, as it is");
    0x82 RETURN_PREFERENCE ReturnPreference Byte Own("`Prefer: return=minimal`");
    0x87 IS_CLIENT_ENCRYPTED IsClientEncrypted Byte NoEffect(INFORMATION);
    0x96 RETRIABLE_WRITE_REQUEST_ID RetriableWriteRequestId Bytes NoEffect(INFORMATION);
    0x97 IS_RETRIED_WRITE_REQUEST IsRetriedWriteRequest Byte NoEffect(INFORMATION);
    0x98 RETRIABLE_WRITE_REQUEST_START_TIMESTAMP RetriableWriteRequestStartTimestamp ULongLong NoEffect(INFORMATION);
    0x9A CHANGE_FEED_START_FULL_FIDELITY_IF_NONE_MATCH ChangeFeedStartFullFidelityIfNoneMatch String NoEffect(INFORMATION);
    0x9D INTENDED_COLLECTION_RID IntendedCollectionRid String Text(headers::INTENDED_RID);
    0xA2 SDK_SUPPORTED_CAPABILITIES SDKSupportedCapabilities ULong NoEffect(INFORMATION);
    0xA9 POPULATE_INDEX_METRICS PopulateIndexMetrics Byte Flag(headers::POPULATE_INDEX_METRICS);
    0xB0 CORRELATED_ACTIVITY_ID CorrelatedActivityId Guid NoEffect(INFORMATION);
    0xB2 CHANGE_FEED_WIRE_FORMAT_VERSION ChangeFeedWireFormatVersion String NoEffect("changes are in the form that the feed asks for");
    0xBF PRIORITY_LEVEL PriorityLevel Byte Own("`x-ms-cosmos-priority-level`");
    0xC2 POPULATE_INDEX_METRICS_V2 PopulateIndexMetricsV2 Byte Flag(headers::POPULATE_INDEX_METRICS_V2);
    0xC4 SUPPORTED_SERIALIZATION_FORMATS SupportedSerializationFormats Byte Own("`x-ms-cosmos-supported-serialization-formats`; with 2 in it, items and pages of queries come in binary JSON");
    0xC8 OPTIMISTIC_DIRECT_EXECUTE OptimisticDirectExecute Byte NoEffect("a query of one range is one either way");
    0xCC TRACE_PARENT TraceParent String NoEffect(INFORMATION);
    0xCD TRACE_STATE TraceState String NoEffect(INFORMATION);
    0xCE GLOBAL_DATABASE_ACCOUNT_NAME GlobalDatabaseAccountName String NoEffect("there is one account");
    0xDA POPULATE_QUERY_ADVICE PopulateQueryAdvice Byte NoEffect("no advice is given");
    0xDB THROUGHPUT_BUCKET ThroughputBucket Byte Number(headers::THROUGHPUT_BUCKET);
    0xDC WORKLOAD_ID WorkloadId Byte NoEffect(INFORMATION);
    0xE7 WORKLOAD_ID_WIDE WorkloadIdWide UShort NoEffect(INFORMATION);
    0xEF HUB_REGION_PROCESSING_ONLY HubRegionProcessingOnly Byte NoEffect("there is one region");
    0xF6 USER_AGENT UserAgent String NoEffect(INFORMATION);
    0xF7 CONTENT_TYPE ContentType String Text(header::CONTENT_TYPE);
    0xFE READ_CONSISTENCY_STRATEGY ReadConsistencyStrategy Byte NoEffect("every read is as good as the strongest level");
    0xFF SUPPORTED_QUERY_FEATURES SupportedQueryFeatures String Text(headers::SUPPORTED_FEATURES);
    0x100 QUERY_VERSION QueryVersion SmallString NoEffect(INFORMATION);
    0x101 SUPPORTED_SERIALIZATION_FEATURES SupportedSerializationFeatures UShort Own("with 4 in it, binary JSON has whole numbers beyond 63 bits");
}

tokens! {
    response, "Tokens of answers.",
    0x00 PAYLOAD_PRESENT PayloadPresent Byte Own("whether a payload follows");
    0x03 CONTINUATION_TOKEN ContinuationToken String Own("`x-ms-continuation`");
    0x04 ETAG ETag String Own("`etag`");
    0x0C RETRY_AFTER_MILLISECONDS RetryAfterMilliseconds ULong Own("`x-ms-retry-after-ms`");
    0x0E STORAGE_MAX_RESOURE_QUOTA StorageMaxResoureQuota String Own("`x-ms-resource-quota`");
    0x0F STORAGE_RESOURCE_QUOTA_USAGE StorageResourceQuotaUsage String Own("`x-ms-resource-usage`");
    0x13 LSN LSN LongLong Own("`lsn`; at least 1, also in errors");
    0x14 ITEM_COUNT ItemCount ULong Own("`x-ms-item-count`");
    0x15 REQUEST_CHARGE RequestCharge Double Own("`x-ms-request-charge`; strong reads ask two replicas and add up what each charges");
    0x17 OWNER_FULL_NAME OwnerFullName String Own("`x-ms-alt-content-path`, not escaped");
    0x18 OWNER_ID OwnerId String Own("`x-ms-content-path`");
    0x1A QUORUM_ACKED_LSN QuorumAckedLSN LongLong Own("the LSN");
    0x1C SUB_STATUS SubStatus ULong Own("`x-ms-substatus`");
    0x1D COLLECTION_UPDATE_PROGRESS CollectionUpdateProgress ULong Own("`x-ms-documentdb-collection-index-transformation-progress`");
    0x1E CURRENT_WRITE_QUORUM CurrentWriteQuorum ULong Own("3");
    0x1F CURRENT_REPLICA_SET_SIZE CurrentReplicaSetSize ULong Own("4");
    0x21 PARTITION_KEY_RANGE_ID PartitionKeyRangeId String Own("the range that answered; `M` is the catalog");
    0x25 LOG_RESULTS LogResults String Own("`x-ms-documentdb-script-log-results`");
    0x28 QUERY_METRICS QueryMetrics String Own("`x-ms-documentdb-query-metrics`");
    0x29 GLOBAL_COMMITTED_LSN GlobalCommittedLSN LongLong Own("the LSN");
    0x30 NUMBER_OF_READ_REGIONS NumberOfReadRegions ULong Own("0: one region");
    0x32 ITEM_LSN ItemLSN LongLong Own("the LSN of the item's last write");
    0x35 TRANSPORT_REQUEST_ID TransportRequestID ULong Own("that of the request");
    0x3A LOCAL_LSN LocalLSN LongLong Own("the LSN");
    0x3B QUORUM_ACKED_LOCAL_LSN QuorumAckedLocalLSN LongLong Own("the LSN");
    0x3C ITEM_LOCAL_LSN ItemLocalLSN LongLong Own("the LSN of the item's last write");
    0x3E SESSION_TOKEN SessionToken String Own("`-1#lsn`, without the range; where no partition was asked, the request's own");
    0x44 INDEX_UTILIZATION IndexUtilization String Own("`x-ms-cosmos-index-utilization`");
    0x45 QUERY_EXECUTION_INFO QueryExecutionInfo String Own("`x-ms-cosmos-query-execution-info`");
    0x51 BACKEND_REQUEST_DURATION_MILLISECONDS BackendRequestDurationMilliseconds Double Own("`x-ms-request-duration-ms`");
}

/// One more than the highest id of a request that is known.
const REQUEST_IDS: usize = 0x102;

/// Where in the table an id of a request is; one that is not there is beyond its end.
static REQUEST_INDEX: [u8; REQUEST_IDS] = {
    let mut index = [u8::MAX; REQUEST_IDS];
    let mut row = 0;
    while row < request::IDS.len() {
        index[request::IDS[row] as usize] = row as u8;
        row += 1;
    }
    index
};

/// What is known about a token of a request.
pub fn of_request(id: u16) -> Option<&'static Token> {
    request::TABLE.get(usize::from(*REQUEST_INDEX.get(usize::from(id))?))
}

impl Token {
    /// What becomes of it, in words.
    fn meaning_text(&self) -> String {
        match &self.meaning {
            Text(name) | Flag(name) | Number(name) => format!("`{name}`"),
            Own(text) => (*text).to_owned(),
            NoEffect(why) => format!("no effect: {why}"),
        }
    }
}

/// The tables as Markdown.
pub fn page() -> String {
    let mut text = String::new();
    for (title, rows) in [
        ("Context request (client to server)", &context_request::TABLE[..]),
        ("Context response (server to client)", &context_response::TABLE),
        ("Requests (client to server)", &request::TABLE),
        ("Responses (server to client)", &response::TABLE),
    ] {
        text.push_str(&format!("## {title}\n\n| id | name | type | what it is |\n|---|---|---|---|\n"));
        for token in rows {
            let Token { id, name, kind, .. } = token;
            text.push_str(&format!("| {id:02X} | {name} | {kind:?} | {} |\n", token.meaning_text()));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_there_once_and_found() {
        for rows in [&context_request::TABLE[..], &context_response::TABLE, &request::TABLE, &response::TABLE]
        {
            assert!(rows.is_sorted_by(|one, other| one.id < other.id));
        }
        for token in &request::TABLE {
            assert_eq!(of_request(token.id).map(|found| found.name), Some(token.name));
        }
        for unknown in [0x0B, 0x101 + 1, u16::MAX] {
            assert!(of_request(unknown).is_none(), "{unknown:#x}");
        }
    }
}

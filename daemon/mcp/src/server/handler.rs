//! The methods, as the SDK names them.
#![expect(deprecated, reason = "the older revisions have features that the newest deprecates")]

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};

use crate::server::request_session::{client_of, is_modern};
use crate::server::{McpClientServer, changes, misfits, offers, tools};

const INSTRUCTIONS: &str = "Tools of a daemon that all agents and editors on this machine share. Paths are relative to the \
client's working folder. Tools may be added, changed and removed at any time, and your list may be short: \
tools_search and tools_call find and call all current tools.";

impl ServerHandler for McpClientServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        let own = Implementation::new("toold", env!("CARGO_PKG_VERSION")).with_title("toold");
        ServerConfig::new(capabilities).with_server_info(own).with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.note_default_cwd(&context.meta);
        self.note_sources(&context.meta)?;
        self.note_listing(&context.meta)?;
        if let Some(meta) = &request.meta {
            self.note_default_cwd(meta);
            self.note_sources(meta)?;
            self.note_listing(meta)?;
        }
        if let Some(meta) = &request.meta {
            self.connection.note_profile(meta);
        }
        self.profiles(&context, Some(&request.client_info.name))?;
        let mut answer = self.negotiate_initialize(&request)?;
        // Only the stateless revisions have extensions.
        answer.capabilities.extensions = None;
        answer.instructions = answer.instructions.filter(|_| !self.has_one_source());
        context.peer.set_peer_info(request);
        Ok(answer)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<rmcp::model::DiscoverResult, ErrorData> {
        self.note_default_cwd(&context.meta);
        self.note_sources(&context.meta)?;
        self.note_listing(&context.meta)?;
        self.profiles(&context, client_of(&context).as_ref().map(|client| client.name.as_str()))?;
        let versions = self.supported_protocol_versions().into_owned();
        let mut own = self.get_info();
        own.instructions = own.instructions.filter(|_| !self.has_one_source());
        Ok(rmcp::model::DiscoverResult::from_server_info(versions, own))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (host, gone) = (&self.mcp.host, self.connection.gone.child_token());
        host.engine().tasks.spawn(changes::notify(host, context.peer, self.connection.clone(), gone));
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.connection.log_level.send_replace(Some(request.level));
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        offers::subscribe(self, &request.uri, &context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.connection.subscriptions.remove(&request.uri);
        Ok(())
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        self.sessions.forget_roots().await;
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        tools::list(self, &context).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, request, context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.task_now(&request)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.answer_task(request).await
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.end_task(&request)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::global_tool(self, name)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        offers::resources(self, &context).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        offers::templates(self, &context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        offers::read(self, request, context).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        offers::prompts(self, &context).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        offers::prompt(self, request, context).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        offers::complete(self, request, context).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(misfits::refusal(&request.method, request.params.as_ref(), is_modern(&context)))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(changes::accepted(requested))
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        changes::listen(self, &subscription).await
    }
}

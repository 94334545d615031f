//! `skills.*`, `memories.list` and `todo.list`: the skills, memories and todo list of a session.

use std::path::Path;
use std::sync::Arc;

use jsonrpsee::types::ErrorObjectOwned;
use toold_builtins::memories::{MemoryScope, StoredMemory, memories};
use toold_builtins::skills::{Skill, Skills, find_skills};
use toold_builtins::todo;
use toold_engine::session::Session;
use toold_proto::method::{MemoriesList, SkillsGet, SkillsList, TodosList};
use toold_proto::skill::{
    BrokenSkill, GetSkill, MemoryInfo, MemoryList, OfSession, SkillInfo, SkillList, SkillText, TodoList,
};
use toold_proto::tool::SessionId;

use crate::rpc::blocking::blocking;
use crate::rpc::error::unknown;
use crate::rpc::{MethodRequest, MethodTable, Right, add_async};

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<SkillsList, _>(module, Right::Anyone, |request, params: OfSession| async move {
        let Skills { skills, broken, shadowed } = skills(&request, params.session_id.as_ref()).await?;
        let broken = broken.into_iter().map(|broken| BrokenSkill {
            path: show(&broken.file),
            line: broken.line,
            message: broken.message,
        });
        Ok(SkillList {
            skills: skills.iter().map(describe).collect(),
            broken: broken.collect(),
            shadowed: shadowed.iter().map(|file| show(file)).collect(),
        })
    })?;
    add_async::<SkillsGet, _>(module, Right::Anyone, |request, params: GetSkill| async move {
        let skills = skills(&request, params.session_id.as_ref()).await?;
        let skill = skills.find(&params.name).ok_or_else(|| unknown("skill", &params.name))?;
        Ok(SkillText { skill: describe(skill), text: skill.text.clone() })
    })?;
    add_async::<MemoriesList, _>(module, Right::Anyone, |request, params: OfSession| async move {
        let session = request.session(params.session_id.as_ref())?;
        let builtins = request.services.builtins.clone();
        let memories = blocking(move || memories(&builtins, &session)).await?;
        Ok(MemoryList { memories: memories.into_iter().map(remembered).collect() })
    })?;
    add_async::<TodosList, _>(module, Right::Anyone, |request, params: OfSession| async move {
        let session = request.session(params.session_id.as_ref())?;
        let builtins = request.services.builtins.clone();
        Ok(TodoList { items: blocking(move || todo::items(&builtins, &session)).await? })
    })
}

async fn skills(request: &MethodRequest, session: Option<&SessionId>) -> Result<Skills, ErrorObjectOwned> {
    let session: Arc<Session> = request.session(session)?;
    let builtins = request.services.builtins.clone();
    blocking(move || find_skills(builtins.skill_places(), session.looks_in(&session.cwd))).await
}

fn describe(skill: &Skill) -> SkillInfo {
    SkillInfo {
        name: skill.name.clone(),
        description: skill.description.clone(),
        scope: skill.whose.as_str().to_owned(),
        path: show(&skill.file),
        folder: skill.folder.as_deref().map(show),
    }
}

fn remembered(memory: StoredMemory) -> MemoryInfo {
    let scope = match memory.scope {
        MemoryScope::Session => "session",
        MemoryScope::Project => "project",
        MemoryScope::Global => "global",
    };
    MemoryInfo {
        path: show(&memory.file),
        memory_id: memory.id,
        scope: scope.to_owned(),
        content: memory.content,
        created_at: memory.created_at,
    }
}

fn show(path: &Path) -> String {
    path.display().to_string()
}
